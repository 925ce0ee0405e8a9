package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/millwright-go/millwright/adapters/bolt/internal/pagecheck"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// Salvaged describes what Salvage did.
type Salvaged struct {
	Objects map[string]int // how many were copied, by kind
	Damaged []error        // for each page and object that can't be read; for an object a *DamagedError
}

// Salvage copies all objects that can be read from the file at path, which may be damaged, to a new file
// at to. The new file may lack the latest writes and deletions. Before a manager uses it, compare it with
// the VMs that exist.
//
// Salvage does not change the file at path. It fails with fs.ErrExist if there is a file at to, and with
// ErrDamaged if no object can be read. If it fails, it creates no file.
func Salvage(path, to string) (Salvaged, error) {
	e := salvage{
		checks: recordChecks(),
		copied: map[string]kindSummary{},
		result: Salvaged{Objects: map[string]int{}},
	}
	handle, err := openLocked(path, &Options{})
	if err != nil {
		return Salvaged{}, fmt.Errorf("salvage: %w", err)
	}
	defer func() { _ = handle.Close() }()
	info, err := handle.Stat()
	if err != nil {
		return Salvaged{}, fmt.Errorf("salvage: %w", err)
	}
	err = createFile(to, func(tx *bbolt.Tx) error {
		e.tx = tx
		if err := initialize(tx); err != nil {
			return err
		}
		err := pagecheck.Salvage(handle, info.Size(), pagecheck.Visitor{Bucket: e.bucket, Record: e.record}, e.damaged)
		if err != nil {
			return pageError(err)
		}
		return e.finish()
	})
	if err != nil {
		return e.result, fmt.Errorf("salvage %s to %s: %w", path, to, withoutPath(err))
	}
	return e.result, nil
}

// salvage is the state of Salvage within its transaction.
type salvage struct {
	tx      *bbolt.Tx
	checks  map[string]func(key, record []byte) *DamagedError
	copied  map[string]kindSummary // by kind
	result  Salvaged
	failure error // the first error of the new file, or a LayoutError of the old one
}

// fail records an error. Only the first one counts.
func (e *salvage) fail(err error) {
	if e.failure == nil {
		e.failure = err
	}
}

// damaged records what is left out.
func (e *salvage) damaged(err error) { e.result.Damaged = append(e.result.Damaged, err) }

// bucket creates the bucket of a kind in the new file.
func (e *salvage) bucket(name []byte, sequence uint64) {
	if e.checks[string(name)] == nil {
		return
	}
	if _, err := e.tx.CreateBucketIfNotExists(name); err != nil {
		e.fail(err)
	}
	e.copied[string(name)] = kindSummary{Version: sequence}
}

// record copies a record, unless it is damaged.
func (e *salvage) record(bucket string, key, record []byte) {
	if bucket == string(aboutBucket) && bytes.Equal(key, layoutKey) && string(record) != strconv.Itoa(layout) {
		e.fail(&LayoutError{Found: string(record), Known: layout})
	}
	check := e.checks[bucket]
	if check == nil {
		return
	}
	if damaged := check(key, record); damaged != nil {
		e.damaged(damaged)
		return
	}
	if err := e.tx.Bucket([]byte(bucket)).Put(key, bytes.Clone(record)); err != nil {
		e.fail(err)
	}
	summary := e.copied[bucket]
	summary.add(record)
	e.copied[bucket] = summary
	e.result.Objects[bucket]++
}

// finish stores the sequences and the summary in the new file.
func (e *salvage) finish() error {
	if e.failure == nil && len(e.result.Objects) == 0 {
		e.failure = fmt.Errorf("%w: no object can be read", ErrDamaged)
	}
	for kind, summary := range e.copied {
		if err := e.tx.Bucket([]byte(kind)).SetSequence(summary.Version); err != nil {
			e.fail(err)
		}
	}
	return errors.Join(e.failure, writeSummary(e.tx, e.copied))
}

// recordChecks returns a function for each kind, which checks a record of the kind.
func recordChecks() map[string]func(key, record []byte) *DamagedError {
	return map[string]func(key, record []byte) *DamagedError{
		"class":      recordCheck[*machine.Class]("class"),
		"secret":     recordCheck[*machine.Secret]("secret"),
		"deployment": recordCheck[*deployment.Deployment]("deployment"),
		"set":        recordCheck[*machineset.Set]("set"),
		"machine":    recordCheck[*machine.Machine]("machine"),
		"pool":       recordCheck[*machinepool.Pool]("pool"),
		"node":       recordCheck[*machine.Node]("node"),
	}
}

// recordCheck returns a function that returns what is wrong with a record, or nil.
func recordCheck[T object.Object[T]](kind string) func(key, record []byte) *DamagedError {
	c := newCodec[T](kind, nil)
	return func(key, record []byte) *DamagedError {
		_, damaged := c.decode(key, record)
		if damaged != nil && damaged.Damage == DamageSealed {
			return nil // it is copied as it is
		}
		return damaged
	}
}
