"""The part of JAX's ``ipu`` platform inside snnjax: its library, the functions the plugin calls, the ops it supports.

`snnjax_jax_plugin`, a second package of the same installation, registers the platform with JAX.
"""

from snnjax_jax_plugin._wire import PLATFORM as PLATFORM
