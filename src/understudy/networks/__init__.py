"""Public feature extractors for perceptual features: trained on public images, or pretrained on ImageNet."""

from understudy.networks.form import Encoder, EncoderForm, load_encoder, save_encoder
from understudy.networks.public import VISION, vision_network
from understudy.networks.training import EncoderTraining, train_encoder

__all__ = [
    "VISION",
    "Encoder",
    "EncoderForm",
    "EncoderTraining",
    "load_encoder",
    "save_encoder",
    "train_encoder",
    "vision_network",
]
