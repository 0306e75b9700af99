"""The test rig: real Docker Engine, real registry, stand-ins for what needs a GPU.

Nothing here is imported by the product.  Everything listens on 127.0.0.1 and lives in temporary folders.
"""
