// Package drivertest checks that a driver keeps the duties written on
// driver.Driver, and brings Memory, a provider that lives in memory, for the
// tests of whatever calls a driver.
//
// A driver runs the suite from a test of its own:
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Suite{New: func(t *testing.T) drivertest.Setup {
//			return drivertest.Setup{Driver: mine.New(), Class: class(), Secret: secret()}
//		}})
//	}
//
// The suite makes VMs under names of its own and deletes them afterwards. It
// may run against a real provider; Setup.Settle and Suite.Patience are for
// those that take their time.
//
// What a driver or its Setup gives no means to check is skipped, with the
// reason, and named once more at the end. The more of Setup is filled in, the
// less is.
package drivertest
