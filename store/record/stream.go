package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// An export is the records of a fleet as lines of JSON: a head, a line for each object, and an end that says how
// many there were. Any store can import what another has exported.

// streamFormat is the format of exports that this program writes and reads.
const streamFormat = 1

// ErrStream says that an export is not one, or is incomplete.
var ErrStream = errors.New("not a complete export of a fleet")

// Object is an object in an export.
type Object struct {
	Kind   string          `json:"kind"`
	Record json.RawMessage `json:"object"`
}

type streamHead struct {
	Fleet int `json:"millwrightFleet"`
}

type streamEnd struct {
	End *int `json:"end"` // how many objects there are
}

// Writer writes an export. NewWriter makes it. Close ends the export; it does not close the destination.
type Writer struct {
	out   *bufio.Writer
	count int
}

// NewWriter begins an export to w.
func NewWriter(w io.Writer) (*Writer, error) {
	e := &Writer{out: bufio.NewWriter(w)}
	return e, e.line(streamHead{streamFormat})
}

// Write adds an object.
func (e *Writer) Write(o Object) error {
	e.count++
	return e.line(o)
}

// Close ends the export.
func (e *Writer) Close() error {
	if err := e.line(streamEnd{&e.count}); err != nil {
		return err
	}
	return e.out.Flush()
}

func (e *Writer) line(v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = e.out.Write(append(content, '\n'))
	return err
}

// Read reads an export, and calls each for its objects. The error is ErrStream, that of r, or that of each. An
// export whose end is missing is only noticed after all its objects.
func Read(r io.Reader, each func(Object) error) error {
	lines := json.NewDecoder(r)
	var head streamHead
	if err := lines.Decode(&head); err != nil || head.Fleet == 0 {
		return fmt.Errorf("%w: it has no head", ErrStream)
	}
	if head.Fleet != streamFormat {
		return fmt.Errorf("%w: it has format %d, this program knows %d", ErrStream, head.Fleet, streamFormat)
	}
	for n := 0; ; n++ {
		var line struct {
			Object
			streamEnd
		}
		switch err := lines.Decode(&line); {
		case err != nil:
			return fmt.Errorf("%w: it breaks off after %d objects", ErrStream, n)
		case line.End != nil && *line.End != n:
			return fmt.Errorf("%w: it has %d objects of %d", ErrStream, n, *line.End)
		case line.End != nil:
			return nil
		case line.Kind == "" || line.Record == nil:
			return fmt.Errorf("%w: line %d is no object", ErrStream, n+2)
		}
		if err := each(line.Object); err != nil {
			return err
		}
	}
}
