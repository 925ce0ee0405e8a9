// Package config has the definitions (CRDs) of the kinds, and manifests to install a manager. On a
// server that has definitions of these kinds already, the definitions here are not needed: a manager
// reads and writes stored objects under any definition.
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

// CRDs returns the definitions of all kinds, in the order of their files' names. The caller may change
// the result.
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

// Object returns the definition as an unstructured object.
func (c CRD) Object() (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	return o, yaml.Unmarshal(c.YAML, &o.Object)
}
