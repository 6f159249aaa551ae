"""Published algorithms that no default uses: parts of the drivers that an option names (`mipfs.drivers.shelf`)."""
