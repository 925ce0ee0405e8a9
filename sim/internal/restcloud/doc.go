// Package restcloud is a small cloud with a REST API, and a driver for it that can have one of twelve
// mistakes. Tests use them to show which mistakes package sim finds in a driver whose VMs it can't see.
package restcloud
