-- Jupyter
prepend_path("PATH", "/opt/scaleout/.venv/bin")
setenv("_COURSE_BASE_NAME", "scaling")
setenv("_COURSE_NOTEBOOK", "course/notebooks/00_tiny.ipynb")
setenv("_COURSE_GIT_REPO", "https://git.example.org/us/course.git")
setenv("_COURSE_GIT_REF", "class")
setenv("_COURSE_NOTEBOOK_TYPE", "lab")
