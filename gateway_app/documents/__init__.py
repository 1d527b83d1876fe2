"""The text of documents that others wrote: PDF files and web pages, each read in its own process."""
