package bolt

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc64"
	"maps"

	"go.etcd.io/bbolt"
)

// tally is what the file says about the records of one kind. With it, no record can be lost, come
// back or be replaced by an older one unnoticed. Each commit writes it.
type tally struct {
	Count    uint64 // of records
	Sum      uint64 // of the fingerprints of all records
	Versions uint64 // the last version given out: the sequence of the bucket
}

func (t *tally) add(key, record []byte) {
	t.Count++
	t.Sum += fingerprint(key, record)
}

func (t *tally) remove(key, record []byte) {
	t.Count--
	t.Sum -= fingerprint(key, record)
}

// fingerprint stands for a record: its key and its head, which has the checksum of the rest.
func fingerprint(key, record []byte) uint64 {
	sum := crc64.Update(0, fingerprints, key)
	return crc64.Update(sum, fingerprints, record[:min(headLength, len(record))])
}

var fingerprints = crc64.MakeTable(crc64.ECMA)

// ledger is what a commit says about the whole file, under ledgerKey.
type ledger struct {
	// Commit is the number of the transaction that wrote it, as the heads have it. It shows if a
	// page that leads to everything else is an older one.
	Commit uint64
	Kinds  map[string]tally
}

var ledgerKey = []byte("ledger")

// writeLedger records what the file holds after the transaction.
func writeLedger(tx *bbolt.Tx, kinds map[string]tally) error {
	content, err := json.Marshal(ledger{Commit: uint64(tx.ID()), Kinds: kinds})
	if err != nil {
		return err
	}
	return tx.Bucket(aboutBucket).Put(ledgerKey, sealed(ledgerKey, content))
}

// readLedger returns what the last commit said, from the file's own bucket.
func readLedger(about map[string][]byte) (ledger, error) {
	var l ledger
	record := about[string(ledgerKey)]
	if len(record) < headLength || record[0] != formatJSON ||
		binary.BigEndian.Uint32(record[1:]) != checksum(ledgerKey, record[headLength:]) ||
		json.Unmarshal(record[headLength:], &l) != nil {
		return ledger{}, fmt.Errorf("%w: what it says of its own records can't be read", ErrDamaged)
	}
	return l, nil
}

// check compares the result of a walk with what the last commit said. The collections check the
// sums, because they know of single records that are damaged.
func (l ledger) check(found *content) error {
	if l.Commit != found.commit {
		return fmt.Errorf("%w: its head is of commit %d, its content of commit %d: a page is an older one, "+
			"or another program has written to it", ErrDamaged, found.commit, l.Commit)
	}
	for kind, t := range found.kinds {
		said, ok := l.Kinds[kind]
		switch {
		case !ok:
			return fmt.Errorf("%w: it has records of kind %q, and none were stored", ErrDamaged, kind)
		case t.Count != said.Count:
			return fmt.Errorf("%w: it has %d records of kind %q, %d were stored", ErrDamaged, t.Count, kind, said.Count)
		case t.Versions != said.Versions:
			return fmt.Errorf("%w: the last version of kind %q is %d, not %d", ErrDamaged, kind, t.Versions, said.Versions)
		}
	}
	if len(found.kinds) < len(l.Kinds) {
		return fmt.Errorf("%w: all records of a kind are missing: it has %d kinds, %d were stored", ErrDamaged,
			len(found.kinds), len(l.Kinds))
	}
	return nil
}

// tallies returns those of the file with the changes of the present transaction.
func (db *DB) tallies() map[string]tally {
	all := maps.Clone(db.file.kinds)
	for _, k := range db.commits.enlisted {
		all[k.name()] = k.staged()
	}
	return all
}
