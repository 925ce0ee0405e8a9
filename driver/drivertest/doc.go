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
// The suite skips checks for which a driver or its Setup has no means, and those that build on a duty
// that failed. At the end it logs how many duties were checked, and why the others were not: go test
// shows that with -v, or if a check fails. A check that is not run is a skipped subtest with its reason,
// so a report made from go test -json has them. The more of Setup is filled in, the fewer are skipped.
//
// Checks run one after the other, each with VMs of its own. Calls overlap in those of Concurrent and
// Processes only.
//
// Most can be tested of a driver that makes HTTP requests. Give its client Faults as transport:
//
//	New: func(t *testing.T) drivertest.Setup {
//		provider, faults := fake.New(t), &drivertest.Faults{}
//		again := func() driver.Driver { return mine.New(provider.URL, &http.Client{Transport: faults}) }
//		return drivertest.Setup{
//			Driver: again(), Again: again, Faults: faults, Class: class(),
//			Count: provider.Count, Leftovers: provider.Disks, Exhaust: provider.Exhaust, PageSize: 3,
//		}
//	}
package drivertest
