package machineset

import (
	"slices"

	"github.com/millwright-go/millwright/machine"
)

// hadClass reports whether a machine has a class that the template had before,
// so that it gets the one that the template has now.
func (s *Spec) hadClass(have *machine.ClassRef) bool {
	want := &s.Template.Spec.Class
	return have.Name != want.Name && have.APIGroup == want.APIGroup && slices.Contains(s.PreviousClasses, have.Name)
}
