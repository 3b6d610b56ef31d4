"""Which platforms there are to test on: the CPU, and the IPU where its plugin is."""

PLATFORMS = ("cpu",)
