"""Public networks that perceptual features are taken from: made from public images, kept, found by name."""

from understudy.networks.files import load_encoder, save_encoder
from understudy.networks.form import Encoder, EncoderForm
from understudy.networks.training import EncoderTraining, train_encoder
from understudy.networks.vision import VISION, vision_network

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
