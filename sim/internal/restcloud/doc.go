// Package restcloud is a small cloud with a REST API, and a driver for it that can have one of many
// mistakes. Tests show with them what package sim finds in a driver whose VMs it can't see.
package restcloud
