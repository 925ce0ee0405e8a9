package bolt

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"

	"go.etcd.io/bbolt"
)

// kindSummary summarizes the records of one kind. Each commit stores it. So Open notices if records are
// missing, if deleted ones are back, and if a record is an old version, even if no page and no record is
// damaged.
type kindSummary struct {
	Count   uint64 // of records
	Sum     uint64 // of the checksums of all records
	Version uint64 // the last one that was assigned: the sequence of the bucket
}

func (s *kindSummary) add(record []byte) {
	s.Count++
	s.Sum += storedChecksum(record)
}

func (s *kindSummary) remove(record []byte) {
	s.Count--
	s.Sum -= storedChecksum(record)
}

// storedChecksum returns the checksum in a record, or 0 if the record is too short to have one.
func storedChecksum(record []byte) uint64 {
	if len(record) < headLength {
		return 0
	}
	return uint64(binary.BigEndian.Uint32(record[1:]))
}

// fileSummary is stored under summaryKey.
type fileSummary struct {
	// Commit is the ID of the transaction that wrote the summary. If the meta page has another ID, a page
	// is an old version.
	Commit uint64
	Kinds  map[string]kindSummary
}

var summaryKey = []byte("summary")

// writeSummary stores the summary of the file as it will be after the transaction.
func writeSummary(tx *bbolt.Tx, kinds map[string]kindSummary) error {
	content, err := json.Marshal(fileSummary{Commit: uint64(tx.ID()), Kinds: kinds})
	if err != nil {
		return err
	}
	return tx.Bucket(aboutBucket).Put(summaryKey, newRecord(summaryKey, content))
}

// readSummary returns the summary of the last commit, from the entries of aboutBucket.
func readSummary(about map[string][]byte) (fileSummary, error) {
	var s fileSummary
	record := about[string(summaryKey)]
	if len(record) < headLength || record[0] != formatJSON ||
		binary.BigEndian.Uint32(record[1:]) != checksum(summaryKey, record[headLength:]) ||
		json.Unmarshal(record[headLength:], &s) != nil {
		return fileSummary{}, fmt.Errorf("%w: the summary of its records can't be read", ErrDamaged)
	}
	return s, nil
}

// check compares the summary with the content of the file, except for the sums: see checkRecordSum.
func (s fileSummary) check(found content) error {
	if s.Commit != found.Commit {
		return fmt.Errorf("%w: its meta page is of commit %d, its summary of commit %d: a page is an old one, "+
			"or another program has written to the file", ErrDamaged, found.Commit, s.Commit)
	}
	for kind, k := range found.kinds {
		stored, ok := s.Kinds[kind]
		switch {
		case !ok:
			return fmt.Errorf("%w: it has records of kind %q, and none were stored", ErrDamaged, kind)
		case k.Count != stored.Count:
			return fmt.Errorf("%w: it has %d records of kind %q, %d were stored", ErrDamaged, k.Count, kind, stored.Count)
		case k.Version != stored.Version:
			return fmt.Errorf("%w: the last version of kind %q is %d, not %d", ErrDamaged, kind, k.Version, stored.Version)
		}
	}
	if len(found.kinds) < len(s.Kinds) {
		return fmt.Errorf("%w: all records of a kind are missing: it has %d kinds, %d were stored", ErrDamaged,
			len(found.kinds), len(s.Kinds))
	}
	return nil
}

// stagedSummaries returns the summaries of all kinds as they will be after the current transaction.
func (db *DB) stagedSummaries() map[string]kindSummary {
	all := maps.Clone(db.file.kinds)
	for _, c := range db.commits.enlisted {
		all[c.name()] = c.stagedSummary()
	}
	return all
}
