"""The images of the rig, put together layer by layer and pushed through the registry's own API.

No engine builds them, so none has them: every later pull is a real one.  Layers are the same bytes on every run.
"""

from .build import HELPER_TAG, STANDIN_TAG, Images, Pushed, build_and_push, push_helper, push_standin

__all__ = ["HELPER_TAG", "STANDIN_TAG", "Images", "Pushed", "build_and_push", "push_helper", "push_standin"]
