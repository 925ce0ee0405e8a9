// Package pagecheck checks the pages of a bbolt file without bbolt, before bbolt maps the file.
//
// bbolt trusts the pages of its file. It checks little when it opens a file, and its own check,
// bbolt.Tx.Check, follows the pages through the map. Damage can therefore end the process, and no
// caller can prevent that:
//
//   - A page beyond the end of a file that was cut off is a fault. Tx.Check meets it in a goroutine
//     of its own, where a caller's recover and debug.SetPanicOnFault have no effect.
//   - A branch page that is its own descendant is followed until the stack overflows, which Go
//     can't recover from, or for hours.
//   - A count in the freelist makes bbolt.Open reserve as much memory as the count says.
//
// Of 300 damaged files made as TestDamagedFiles of package bolt makes them, bbolt.Open and Tx.Check
// ended the process for 15 and did not return within 20 seconds for 12. Neither of them notices that
// the newer meta page is damaged: bbolt then uses the older one, and the last commit is lost.
//
// Check returns an error for all of these. It reads each page at most once and nothing beyond the end
// of the file. It holds one path down the tree in memory, which is at most as large as the file, and
// one bit a page. It checks the structure only: which pages there are, that each is used once, and the
// order of the keys. Checksums of records are the caller's.
//
// Salvage reads what is still readable in a file that Check rejects.
//
// The format is that of bbolt 1.5, whose version number in the meta page (2) has not changed since
// 2014. A file with another number is ErrNoMeta.
package pagecheck
