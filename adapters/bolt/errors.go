package bolt

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/millwright-go/millwright/adapters/bolt/internal/pagecheck"
	"github.com/millwright-go/millwright/object"
)

// These are the errors about a file or a DB as a whole. Errors come wrapped; use errors.Is.
var (
	// ErrLocked: the file is open already, in another process or this one, and was not closed within
	// Options.LockTimeout.
	ErrLocked = errors.New("the file is in use")
	// ErrReplaced: the file was removed, moved or replaced while the DB was open, so another process may
	// have opened another file at the path. Writes, live reads and backups fail from then on.
	ErrReplaced = errors.New("the file is not at its path any more")
	// ErrForeign: the file is not one of this package.
	ErrForeign = errors.New("not a file of this store")
	// ErrDamaged: the file or an object in it can't be read. For an object, the error is a
	// *DamagedError.
	ErrDamaged = pagecheck.ErrDamaged
	// ErrLayout matches every *LayoutError.
	ErrLayout = errors.New("layout of another program")
	// ErrClosed: the DB was closed.
	ErrClosed = errors.New("the store is closed")
	// ErrUncertain: a commit has failed, and it is not known whether the file has it. Writes and live
	// reads fail from then on. Close the DB and open it again to find out.
	ErrUncertain = errors.New("a commit may or may not have reached the disk, the file must be opened again")
)

// LayoutError says that a program with another layout wrote the file, and that this program can't
// read it.
type LayoutError struct {
	Found string // the layout of the file
	Known int    // the highest layout that this program knows
}

// Error names both layouts.
func (e *LayoutError) Error() string {
	return "the file has layout " + strconv.Quote(e.Found) + ", this program knows those up to " + strconv.Itoa(e.Known)
}

// Is makes errors.Is(err, ErrLayout) true.
func (e *LayoutError) Is(target error) bool { return target == ErrLayout }

// Damage says what is wrong with the record of an object.
type Damage uint8

// These are the ways in which a record can be damaged.
const (
	// DamageNone is no damage.
	DamageNone Damage = iota
	// DamageKey: the key in the file is not the key of an object.
	DamageKey
	// DamageFormat: this program does not know the record's format.
	DamageFormat
	// DamageChecksum: the checksum does not match the content.
	DamageChecksum
	// DamageContent: the content is not an object of the kind, or has a field that this program does not
	// know. The next write would lose that field.
	DamageContent
	// DamageIdentity: the content is an object with another key, or without UID or version.
	DamageIdentity
	// DamageSealed: the content is sealed, and Options.Seal can't open it.
	DamageSealed
)

var damages = [...]string{
	DamageNone:     "is not damaged",
	DamageKey:      "has a key in the file that can't be read",
	DamageFormat:   "is stored in an unknown format",
	DamageChecksum: "does not fit its checksum",
	DamageContent:  "has content that does not fit its kind",
	DamageIdentity: "is stored as another object, or without UID or version",
	DamageSealed:   "is sealed, and can't be opened here",
}

// String returns a text that follows the name of an object, such as "does not fit its checksum".
func (d Damage) String() string {
	if int(d) < len(damages) {
		return damages[d]
	}
	return "is damaged in the unknown way " + strconv.Itoa(int(d))
}

// DamagedError is about an object whose record can't be read. It does not contain the record's content.
type DamagedError struct {
	Kind   string
	Key    object.Key // zero with DamageKey
	Damage Damage

	raw []byte // the key in the file
}

// Error returns a text such as "machine fleet/a does not fit its checksum".
func (e *DamagedError) Error() string {
	if e.Key == (object.Key{}) {
		return fmt.Sprintf("a %s, %x in the file, %s", e.Kind, e.raw, e.Damage)
	}
	return e.Kind + " " + e.Key.String() + " " + e.Damage.String()
}

// Is makes errors.Is(err, ErrDamaged) true.
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }
