package machine

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/millwright-go/millwright/object"
)

// UserData is the key of a secret that holds what a VM runs at its first boot.
const UserData = "userData"

// Class is the blueprint of machines: which provider makes them, from what,
// with which credentials. A change of a class changes no machine that exists, but
// for what the driver can update on its VM.
type Class struct {
	object.Meta
	// Provider is the name a driver answers to. Empty is tolerated: the
	// driver decides.
	Provider string
	// ProviderSpec is the provider's own description, opaque here.
	ProviderSpec []byte
	// NodeTemplate says what a node of this class offers, for autoscalers
	// that must know before there is one.
	NodeTemplate *NodeShape
	// SecretRef names the boot secret, CredentialsRef the provider's
	// credentials; their data are merged, CredentialsRef's winning.
	SecretRef      *object.Key
	CredentialsRef *object.Key
}

// NodeShape describes the node that a class yields. Quantities are in
// Kubernetes' notation and opaque here.
type NodeShape struct {
	Capacity        map[string]string // cpu, memory, gpu
	VirtualCapacity map[string]string // extended resources, applied to the node
	InstanceType    string
	Region          string
	Zone            string
	Architecture    string
}

// Clone implements object.Object.
func (c *Class) Clone() *Class {
	d := *c
	d.Meta = c.CloneMeta()
	d.ProviderSpec = bytes.Clone(c.ProviderSpec)
	d.SecretRef = cloneKey(c.SecretRef)
	d.CredentialsRef = cloneKey(c.CredentialsRef)
	if c.NodeTemplate != nil {
		shape := *c.NodeTemplate
		shape.Capacity = maps.Clone(shape.Capacity)
		shape.VirtualCapacity = maps.Clone(shape.VirtualCapacity)
		d.NodeTemplate = &shape
	}
	return &d
}

// CopyStatus implements object.Object; a class has no status.
func (c *Class) CopyStatus(*Class) {}

// SpecEqual implements object.Object.
func (c *Class) SpecEqual(d *Class) bool {
	return c.Provider == d.Provider && bytes.Equal(c.ProviderSpec, d.ProviderSpec) &&
		sameKey(c.SecretRef, d.SecretRef) && sameKey(c.CredentialsRef, d.CredentialsRef) &&
		c.NodeTemplate.equal(d.NodeTemplate)
}

func (s *NodeShape) equal(t *NodeShape) bool {
	if s == nil || t == nil {
		return s == t
	}
	return maps.Equal(s.Capacity, t.Capacity) && maps.Equal(s.VirtualCapacity, t.VirtualCapacity) &&
		s.InstanceType == t.InstanceType && s.Region == t.Region && s.Zone == t.Zone &&
		s.Architecture == t.Architecture
}

// Validate returns an *object.FieldError for what can't work when a machine
// is created from the class. What is merely odd, such as an empty provider, passes.
func (c *Class) Validate() error {
	switch {
	case c.SecretRef != nil && c.SecretRef.Name == "":
		return object.Invalid("secretRef.name", "must not be empty").Of("class", c.Key)
	case c.CredentialsRef != nil && c.CredentialsRef.Name == "":
		return object.Invalid("credentialsSecretRef.name", "must not be empty").Of("class", c.Key)
	}
	if c.NodeTemplate == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.NodeTemplate.VirtualCapacity)) {
		quantity := c.NodeTemplate.VirtualCapacity[name]
		if name == "" || quantity == "" {
			return object.Invalid("nodeTemplate.virtualCapacity", "has an entry without name or quantity").Of("class", c.Key)
		}
		if problem := resourceProblem(name, quantity); problem != "" {
			return entryError("nodeTemplate.virtualCapacity", name, problem).Of("class", c.Key)
		}
	}
	return nil
}

// Unshaped names what an autoscaler must know of a class to make the first
// machine of it and what the node template does not say, though it says some of
// it: capacity, instance type, region, zone. Nil: it says all of it, or nothing,
// since then no autoscaler is meant to scale it up. Machines are made from the class all
// the same.
func (c *Class) Unshaped() (missing []string) {
	var t NodeShape
	if c.NodeTemplate != nil {
		t = *c.NodeTemplate
	}
	parts := [...]struct {
		name  string
		there bool
	}{
		{"capacity", len(t.Capacity) > 0}, {"instance type", t.InstanceType != ""},
		{"region", t.Region != ""}, {"zone", t.Zone != ""},
	}
	for _, part := range parts {
		if !part.there {
			missing = append(missing, part.name)
		}
	}
	if len(missing) == len(parts) {
		return nil
	}
	return missing
}

// Secret holds data that must not be shown: printing one, with any verb,
// prints its name, and so does logging one with slog. Encoders such as
// encoding/json write the data, since stores need them to; a value that holds a
// secret must not be handed to a logger that encodes values, nor a secret be kept in an unexported field of a struct that is printed, where no
// method of it is called.
type Secret struct {
	object.Meta
	Data map[string][]byte
}

// String names the secret and shows nothing of it.
func (s Secret) String() string { return "secret " + s.Key.String() }

// Format writes what String returns, for any verb. It has a value
// receiver, so that a Secret inside another value is covered as well.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// Clone implements object.Object.
func (s *Secret) Clone() *Secret {
	c := &Secret{Meta: s.CloneMeta()}
	if s.Data != nil {
		c.Data = make(map[string][]byte, len(s.Data))
		for k, v := range s.Data {
			c.Data[k] = bytes.Clone(v)
		}
	}
	return c
}

// CopyStatus implements object.Object; a secret has no status.
func (s *Secret) CopyStatus(*Secret) {}

// SpecEqual implements object.Object.
func (s *Secret) SpecEqual(t *Secret) bool { return maps.EqualFunc(s.Data, t.Data, bytes.Equal) }

func cloneKey(k *object.Key) *object.Key {
	if k == nil {
		return nil
	}
	c := *k
	return &c
}

func sameKey(a, b *object.Key) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
