package config

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed crds rbac manager one-cluster two-clusters gardener-autoscaler simulated samples
var manifests embed.FS

// Manifests returns the folders of this package with kustomizations, such as one-cluster.
func Manifests() fs.FS { return manifests }

// Objects returns the objects in the files of one folder of Manifests, such as rbac/control, in the
// order of the files' names. Patches are objects, too. It returns an error if there is no such folder.
func Objects(folder string) ([]*unstructured.Unstructured, error) {
	list, err := manifests.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, file := range list {
		if file.IsDir() || file.Name() == "kustomization.yaml" {
			continue
		}
		found, err := documents(path.Join(folder, file.Name()))
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", folder, file.Name(), err)
		}
		all = slices.Concat(all, found)
	}
	return all, nil
}

func documents(file string) (all []*unstructured.Unstructured, err error) {
	text, err := manifests.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(string(text)), len(text)); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if o.Object != nil {
			all = append(all, o)
		}
	}
}
