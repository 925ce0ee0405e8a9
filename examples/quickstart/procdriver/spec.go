package procdriver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
	"github.com/millwright-go/millwright/machine"
)

// Provider is the name that this driver answers to. A class that names no
// provider is accepted too.
const Provider = "process"

// Spec is the provider spec of a class, in JSON. Unknown fields can't be decoded.
type Spec struct {
	// Cluster says which machines belong together; the driver sees no others.
	// Lower-case letters, digits, '-' and '.'.
	Cluster string `json:"cluster"`
	// Version of what the process runs; opaque. Processes of different
	// versions differ.
	Version string `json:"version,omitempty"`
	// BootDelay is how long a process takes until it serves, such as "200ms". Empty means no time.
	BootDelay string `json:"bootDelay,omitempty"`
}

// Encode returns the spec as a class holds it.
func (s Spec) Encode() []byte {
	text, _ := json.Marshal(s) // three strings
	return text
}

// boot returns BootDelay as a duration.
func (s Spec) boot() (time.Duration, error) {
	if s.BootDelay == "" {
		return 0, nil
	}
	delay, err := time.ParseDuration(s.BootDelay)
	if err == nil && delay < 0 {
		err = errors.New("is negative")
	}
	return delay, err
}

// decodeSpec reads a provider spec.
func decodeSpec(text []byte) (Spec, error) {
	var s Spec
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return Spec{}, codes.Wrap(codes.Internal, err, "the provider spec can't be decoded: "+err.Error())
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Spec{}, codes.New(codes.Internal, "the provider spec goes on after its end")
	}
	if err := registry.CheckName(s.Cluster); err != nil {
		return Spec{}, codes.Wrap(codes.InvalidArgument, err, "the provider spec's cluster "+err.Error())
	}
	if _, err := s.boot(); err != nil {
		return Spec{}, codes.Wrap(codes.InvalidArgument, err,
			fmt.Sprintf("the provider spec's bootDelay %q is no duration such as 200ms", s.BootDelay))
	}
	return s, nil
}

// target is the process that a call is about.
type target struct {
	dir  *registry.Dir
	spec Spec
	name string // the machine's
	// instance is the incarnation that is meant. Empty means any.
	instance string
	// elsewhere says that the given provider ID is none of this cluster.
	elsewhere bool
}

// target finds out what a call is about, and refuses invalid requests.
func (d *Driver) target(m *machine.Machine, c *machine.Class) (*target, error) {
	if m == nil || m.Name == "" {
		return nil, codes.New(codes.InvalidArgument, "the machine has no name")
	}
	if err := registry.CheckName(m.Name); err != nil {
		return nil, codes.Wrap(codes.InvalidArgument, err, "the machine's name "+err.Error())
	}
	spec, err := SpecOf(c)
	if err != nil {
		return nil, err
	}
	t := &target{dir: d.dir(spec), spec: spec, name: m.Name}
	if id := m.Spec.ProviderID; id != "" {
		var cluster string
		cluster, t.name, t.instance = splitID(id)
		t.elsewhere = cluster != spec.Cluster
	}
	return t, nil
}

// SpecOf reads the provider spec of a class. Its error has a code.
func SpecOf(c *machine.Class) (Spec, error) {
	if c == nil {
		return Spec{}, codes.New(codes.InvalidArgument, "the class is missing")
	}
	if c.Provider != "" && c.Provider != Provider {
		return Spec{}, codes.Newf(codes.InvalidArgument, "the class asks for the provider %q; this is %q", c.Provider, Provider)
	}
	return decodeSpec(c.ProviderSpec)
}

const idPrefix = "process:///"

// ProviderID names one incarnation of a machine.
func ProviderID(cluster, name, instance string) string {
	return idPrefix + cluster + "/" + name + "/" + instance
}

// splitID splits a provider ID. It returns no cluster if it is none of this driver's.
func splitID(id string) (cluster, name, instance string) {
	rest, ok := strings.CutPrefix(id, idPrefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 || registry.CheckName(parts[1]) != nil || parts[2] == "" {
		return "", "", ""
	}
	return parts[0], parts[1], parts[2]
}
