package deployment

import (
	"maps"

	"github.com/millwright-go/millwright/machineset"
)

// sameTemplate reports whether machines of both templates are interchangeable, so that one is never
// replaced by the other. The hash label does not count, nor do fields that can be changed on an
// existing machine.
func sameTemplate(a, b *machineset.Template, hashLabel string) bool {
	return a.Spec.Class.APIGroup == b.Spec.Class.APIGroup && a.Spec.Class.Name == b.Spec.Class.Name &&
		sameLabels(a.Labels, b.Labels, hashLabel) && maps.Equal(a.Annotations, b.Annotations)
}

// Wants reports whether a set has the deployment's present template, so that its machines are new
// ones. The label with a template's hash is not compared.
func (p *Policy) Wants(d *Deployment, s *machineset.Set) bool {
	return sameTemplate(&s.Spec.Template, &d.Spec.Template, p.Keys.TemplateHash)
}

// sameLabels compares two maps as if neither had the key.
func sameLabels(a, b map[string]string, key string) bool {
	rest := len(b)
	if _, ok := b[key]; ok {
		rest--
	}
	for k, v := range a {
		if k == key {
			continue
		}
		if w, ok := b[k]; !ok || w != v {
			return false
		}
		rest--
	}
	return rest == 0
}

// withEntry returns a copy of m in which key has this value.
func withEntry(m map[string]string, key, value string) map[string]string {
	c := make(map[string]string, len(m)+1)
	maps.Copy(c, m)
	c[key] = value
	return c
}

// withoutEntry returns a copy of m in which the key is missing.
func withoutEntry(m map[string]string, key string) map[string]string {
	c := maps.Clone(m)
	delete(c, key)
	return c
}

// outdated returns the fields that a set must still copy from its deployment without replacing a
// machine. Empty: nothing.
func outdated(s *machineset.Set, d *Deployment) string {
	have, want := &s.Spec.Template.Spec, &d.Spec.Template.Spec
	switch {
	case !have.NodeTemplate.Equal(&want.NodeTemplate):
		return "node template"
	case !have.Config.Equal(&want.Config):
		return "configuration"
	case have.Class.Kind != want.Class.Kind:
		return "class kind"
	case s.Spec.MinReady != d.Spec.MinReady:
		return "minimum ready time"
	case s.Spec.MaxAge != d.Spec.MaxAge:
		return "maximum age"
	}
	return ""
}

// bringUpToDate changes all that outdated finds.
func bringUpToDate(s *machineset.Set, d *Deployment) {
	have, want := &s.Spec.Template.Spec, d.Spec.Template.Spec.Clone()
	have.NodeTemplate = want.NodeTemplate
	have.Config = want.Config
	have.Class.Kind = want.Class.Kind
	s.Spec.MinReady, s.Spec.MaxAge = d.Spec.MinReady, d.Spec.MaxAge
}
