// Package drivertest checks that a driver meets the duties of driver.Driver. It has Memory, a
// provider that lives in memory, for tests of code that calls a driver.
//
// A driver runs the suite from a test of its own:
//
//	func TestConformance(t *testing.T) {
//		drivertest.Run(t, drivertest.Suite{New: func(t *testing.T) drivertest.Setup {
//			return drivertest.Setup{Driver: mine.New(), Class: class(), Secret: secret()}
//		}})
//	}
//
// The suite creates VMs under names of its own and deletes them afterwards. It may run against a
// real provider; Setup.Settle and Suite.Patience are for slow ones.
//
// The suite skips checks for which a driver or its Setup has no means. It logs the reason, and
// lists them again at the end. The more of Setup is filled in, the fewer are skipped.
package drivertest
