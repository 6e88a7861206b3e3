"""Questions asked of jobs and of what they left: kernels, number formats, timelines, builds."""
