// Package pooldrivertest checks that a driver keeps the duties written on
// pooldriver.Driver, and brings Memory, a provider of groups that lives in memory.
// It is to pooldriver what drivertest is to driver; see there.
package pooldrivertest
