"""Public feature extractors for perceptual features: trained on public images, or pretrained on ImageNet."""

from understudy.networks.public import Encoder as Encoder
from understudy.networks.public import load_encoder as load_encoder
from understudy.networks.public import save_encoder as save_encoder
from understudy.networks.public import vision_network as vision_network
from understudy.networks.training import EncoderTraining as EncoderTraining
from understudy.networks.training import train_encoder as train_encoder
