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

// Provider is the provider's name in classes of this driver. A class without a provider is accepted,
// too.
const Provider = "process"

// Spec is the provider spec of a class, in JSON. Unknown fields are refused.
type Spec struct {
	// Cluster says which machines belong together: a call sees no machines of other clusters. It
	// contains neither '/' nor '.'.
	Cluster string `json:"cluster"`
	// Version is the version of the machine's software. It can be any string: a process of another
	// version is not adopted.
	Version string `json:"version,omitempty"`
	// BootDelay is the time until a process serves, in nanoseconds.
	BootDelay time.Duration `json:"bootDelay,omitempty"`
}

// Encode returns the JSON of the spec, for a class.
func (s Spec) Encode() []byte { return encode(s) }

func encode(plain any) []byte {
	text, _ := json.Marshal(plain) // strings and numbers: no error
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
	roster   *roster.Roster
	spec     Spec
	name     string // the machine's
	instance string // of the process; empty means any process with the name
}

// target returns the process that a call is about. It refuses invalid requests.
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
		// An ID of another cluster or driver gives an empty name, which no process has.
		rest, _ := strings.CutPrefix(id, idPrefix+spec.Cluster+"/")
		if t.name, t.instance, _ = strings.Cut(rest, "/"); t.instance == "" {
			t.name = ""
		}
	}
	return t, nil
}

// living returns the process if it runs, or nil. It may not have joined yet.
func (t *target) living() (*roster.Entry, error) {
	return t.roster.Living(t.name, t.instance)
}

// checkAdoption returns an error unless a process has the spec that was asked for.
func (t *target) checkAdoption(e *roster.Entry) error {
	var args agent.Machine
	if err := json.Unmarshal(e.About, &args); err != nil {
		return fmt.Errorf("the order of the machine's process can't be read: %w", err)
	}
	if args.Version != t.spec.Version || args.Boot != t.spec.BootDelay {
		return codes.Newf(codes.AlreadyExists, "a process of this name runs version %q with boot delay %s, not version %q with boot delay %s",
			args.Version, args.Boot, t.spec.Version, t.spec.BootDelay)
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
