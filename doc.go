// Package millwright is the root of a library that keeps fleets of machines (virtual machines, bare
// metal, processes) in the state that their owner requests. It holds no code; the packages below it
// do.
//
// # Decide, then do
//
// The core is pure. A decision reads plain data and returns plain data:
//
//	plan, err := machine.Decide(observation, policy, now)
//
// The observation holds the object and every answer of provider and cluster in this pass. A
// question that was not asked is nil. The plan holds one write, or effects of one kind, or neither,
// with the time to look again and the reason. The caller carries the plan out, adds the answer to
// the observation and decides again, until there is nothing left to do.
//
// A plan is safe to lose. State that must survive a crash is stored before the effect that it
// governs. So the process after a crash reads again and either repeats the effect or finds it done.
// No decision reads a clock, a random source or the environment: the same observation at the same
// time gives the same plan.
//
// # How deep to go
//
// Each depth works without the ones below it, and without their dependencies.
// Packages under adapters are modules of their own.
//
//	to have                             import                              bring
//	the arithmetic of a rollout         deployment/rollout                  numbers
//	one decision                        machine, machineset, deployment,    an observation
//	                                    drain, safety, machineclass,
//	                                    machinepool
//	the loop around the decisions       manager                             a store, a driver.Driver,
//	                                                                        perhaps a cluster
//	a manager without Kubernetes        manager, adapters/bolt              a driver
//	tests of any of these               sim, store/storetest,               properties
//	                                    driver/drivertest
//
// A driver tells the library how one provider creates, deletes and lists machines. Package driver
// describes it and drivertest tests it. The answers of providers are error codes with a rule for
// each: package codes.
//
// # Phases and stages
//
// The phases of a machine and the stages of its deletion and of its update in place are transition
// tables in package machine. Package machine/fsm builds state machines and diagrams from them.
package millwright
