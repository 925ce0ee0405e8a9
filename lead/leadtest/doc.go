// Package leadtest checks that a lease keeps the rules written on lead.Lease, and has a lease for tests of
// programs that lead.
//
//   - Run is the suite. A lease calls it from a test of its own, see the example.
//   - Memory is a lease in memory, for the processes of one test. Advance lets time pass.
//   - Faulty makes calls of a lease fail, hang, or lose their answers.
//
// lead.Run reads the clock and has timers. Package testing/synctest gives both a virtual time, and Memory as well.
package leadtest
