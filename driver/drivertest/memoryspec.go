package drivertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// MemorySpec is the provider spec of Memory, in JSON. Unknown fields can't be
// decoded.
type MemorySpec struct {
	Cluster string            `json:"cluster"` // must not be empty
	Size    string            `json:"size"`    // must not be empty; VMs of different sizes differ
	Tags    map[string]string `json:"tags,omitempty"`
}

// Encode returns the spec as a class holds it.
func (s MemorySpec) Encode() []byte {
	text, _ := json.Marshal(s) // can't fail: strings and a map of strings
	return text
}

// decodeSpec reads a provider spec. It returns INTERNAL if it can't, and INVALID_ARGUMENT if no VM
// could be made from it.
func decodeSpec(text []byte) (MemorySpec, error) {
	var spec MemorySpec
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		return MemorySpec{}, codes.Wrap(codes.Internal, err, "the provider spec can't be decoded")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return MemorySpec{}, codes.New(codes.Internal, "the provider spec goes on after its end")
	}
	switch {
	case spec.Cluster == "":
		return MemorySpec{}, codes.New(codes.InvalidArgument, "the provider spec names no cluster")
	case spec.Size == "":
		return MemorySpec{}, codes.New(codes.InvalidArgument, "the provider spec names no size")
	}
	return spec, nil
}

// Admit checks what every call with a class needs, and returns its spec. Providers of other things
// that accept the classes and secrets of a Memory use it too.
func (m *Memory) Admit(c *machine.Class, secret *machine.Secret) (MemorySpec, error) {
	switch {
	case c == nil:
		return MemorySpec{}, codes.New(codes.InvalidArgument, "the class is missing")
	case c.Provider != MemoryProvider:
		return MemorySpec{}, codes.Newf(codes.InvalidArgument,
			"the class asks for the provider %q; this is %q", c.Provider, MemoryProvider)
	case m.options.Token != "" && (secret == nil || string(secret.Data["token"]) != m.options.Token):
		return MemorySpec{}, codes.New(codes.Unauthenticated, "the secret's token is not the right one")
	}
	return decodeSpec(c.ProviderSpec)
}

// admitMachine is Admit for calls about one machine.
func (m *Memory) admitMachine(of *machine.Machine, c *machine.Class, secret *machine.Secret) (MemorySpec, error) {
	if of == nil || of.Name == "" {
		return MemorySpec{}, codes.New(codes.InvalidArgument, "the machine has no name")
	}
	return m.Admit(c, secret)
}
