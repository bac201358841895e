"""A pretrained face detector, MTCNN, as the workbench's worked example."""
