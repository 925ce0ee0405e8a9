// Package pagecheck checks the pages of a bbolt file without bbolt, before bbolt maps the file.
//
// bbolt trusts the pages of its file. It checks little when it opens a file, and its own check,
// bbolt.Tx.Check, reads the pages through the memory map. So damage can end the process, and a caller
// can't prevent that:
//
//   - If the file was cut off, reading a page beyond its end is a memory fault. Tx.Check reads pages in a
//     goroutine of its own, where a caller's recover and debug.SetPanicOnFault have no effect.
//   - If a branch page is its own descendant, bbolt follows it for hours, or until the stack overflows,
//     which Go can't recover from.
//   - bbolt.Open allocates as much memory as a count in the freelist says.
//
// With 300 files that were damaged as in TestDamagedFiles of package bolt, bbolt.Open and Tx.Check ended
// the process 15 times, and ran for more than 20 seconds 12 times. They don't notice that the newer meta
// page is damaged: bbolt then uses the older one, and the last commit is lost.
//
// Check returns an error for all such files. It reads each page at most once, and nothing beyond the end
// of the file. In memory it holds one path through the tree, which is at most as large as the file, and
// one bit for each page. It checks the structure only: that pages exist, that each is used once, and that
// the keys are in order. It does not check the checksums of records.
//
// Salvage reads the readable parts of a file that Check rejects.
//
// The format is that of bbolt 1.5. The version number in the meta page (2) has not changed since 2014. A
// file with another number is ErrNoMeta.
package pagecheck
