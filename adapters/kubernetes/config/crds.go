// Package config has the definitions of the kinds and the manifests of a manager, for their
// installation. A fleet whose kinds are defined already needs none of them: what is stored is read
// and written under any definition of these kinds.
package config

import (
	"embed"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed crds/*_*.yaml
var files embed.FS

// CRD is the definition of a kind.
type CRD struct {
	// Name of the definition, such as machines.machine.sapcloud.io.
	Name string
	// YAML is the definition as it is applied.
	YAML []byte
}

// CRDs returns the definitions of all kinds, by their files' names. The caller
// may change what it gets.
func CRDs() []CRD {
	list, _ := files.ReadDir("crds") // what is embedded can be read
	all := make([]CRD, 0, len(list))
	for _, file := range list {
		text, _ := files.ReadFile("crds/" + file.Name())
		group, plural, _ := strings.Cut(strings.TrimSuffix(file.Name(), ".yaml"), "_")
		all = append(all, CRD{Name: plural + "." + group, YAML: text})
	}
	return all
}

// Object returns the definition as a client for any kind takes it.
func (c CRD) Object() (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	return o, yaml.Unmarshal(c.YAML, &o.Object)
}
