package procdriver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
)

// Provider is the name that this driver answers to. A class that names no
// provider is accepted too.
const Provider = "process"

// Spec is the provider spec of a class, in JSON. Unknown fields can't be decoded.
type Spec struct {
	// Cluster says which machines belong together; the driver sees no others.
	// It has neither '/' nor '.'.
	Cluster string `json:"cluster"`
	// Version of what the process runs; opaque. Processes of different
	// versions differ.
	Version string `json:"version,omitempty"`
	// BootDelay is how long a process takes until it serves, in nanoseconds.
	BootDelay time.Duration `json:"bootDelay,omitempty"`
}

// Encode returns the spec as a class holds it.
func (s Spec) Encode() []byte { return encode(s) }

func encode(plain any) []byte {
	text, _ := json.Marshal(plain) // strings and numbers
	return text
}

// SpecOf reads the provider spec of a class. Its error has a code.
func SpecOf(c *machine.Class) (Spec, error) {
	if c == nil {
		return Spec{}, codes.New(codes.InvalidArgument, "the class is missing")
	}
	if c.Provider != "" && c.Provider != Provider {
		return Spec{}, codes.Newf(codes.InvalidArgument, "the class asks for the provider %q; this is %q", c.Provider, Provider)
	}
	var s Spec
	decoder := json.NewDecoder(bytes.NewReader(c.ProviderSpec))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return Spec{}, codes.Wrap(codes.Internal, err, "the provider spec can't be decoded: "+err.Error())
	}
	if s.Cluster == "" || strings.ContainsAny(s.Cluster, "/.") {
		return Spec{}, codes.Newf(codes.InvalidArgument, "the provider spec's cluster %q is no name of a directory", s.Cluster)
	}
	if s.BootDelay < 0 {
		return Spec{}, codes.Newf(codes.InvalidArgument, "the provider spec's bootDelay %s is negative", s.BootDelay)
	}
	return s, nil
}

// target is the process that a call is about.
type target struct {
	roster *roster.Roster
	spec   Spec
	name   string // the machine's
	// instance is the process that is meant. Empty means any of that name.
	instance string
}

// target finds out what a call is about, and refuses invalid requests.
func (d *Driver) target(m *machine.Machine, c *machine.Class) (*target, error) {
	if m == nil || m.Name == "" {
		return nil, codes.New(codes.InvalidArgument, "the machine has no name")
	}
	spec, err := SpecOf(c)
	if err != nil {
		return nil, err
	}
	t := &target{roster: d.Roster(spec.Cluster), spec: spec, name: m.Name}
	if id := m.Spec.ProviderID; id != "" {
		// The ID of another cluster, or of another driver, names no process of this one.
		rest, _ := strings.CutPrefix(id, idPrefix+spec.Cluster+"/")
		if t.name, t.instance, _ = strings.Cut(rest, "/"); t.instance == "" {
			t.name = ""
		}
	}
	return t, nil
}

// living returns the process that is meant, or nil if it does not run. It may not have joined yet.
func (t *target) living() (*roster.Entry, error) {
	return t.roster.Living(t.name, t.instance)
}

// adopt returns an error unless a process is like the one that was asked for.
func (t *target) adopt(e *roster.Entry) error {
	var made agent.Machine
	if err := json.Unmarshal(e.About, &made); err != nil {
		return fmt.Errorf("the order of the machine's process can't be read: %w", err)
	}
	if made.Version != t.spec.Version || made.Boot != t.spec.BootDelay {
		return codes.Newf(codes.AlreadyExists, "a process of this name runs version %q with boot delay %s, not version %q with boot delay %s",
			made.Version, made.Boot, t.spec.Version, t.spec.BootDelay)
	}
	return nil
}

// id returns the provider ID of a process.
func (t *target) id(e *roster.Entry) string { return ProviderID(t.spec.Cluster, e.Name, e.Instance) }

const idPrefix = "process:///"

// ProviderID names one process of a machine.
func ProviderID(cluster, name, instance string) string {
	return idPrefix + cluster + "/" + name + "/" + instance
}
