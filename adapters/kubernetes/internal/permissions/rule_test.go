package permissions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/millwright-go/millwright/adapters/kubernetes/config"
)

// These are the namespaces in which a permission applies.
const (
	control = "control" // the fleet's namespace
	target  = "target"  // all namespaces
	system  = metav1.NamespaceSystem
)

// permission is one verb that the rules allow for one resource.
type permission struct {
	place, verb, group, resource string
	name                         string // empty for all
}

// String returns a unique text.
func (l permission) String() string {
	text := fmt.Sprintf("%s %s %s %s", l.place, l.verb, cmp.Or(l.group, "core"), l.resource)
	if l.name != "" {
		text += " " + l.name
	}
	return text
}

// refusal returns the error text of the server without this permission.
func (l permission) refusal(namespace string) string {
	if strings.HasSuffix(l.resource, "/finalizers") {
		return "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
	}
	text := fmt.Sprintf("User %q cannot %s resource %q in API group %q", user(namespace), l.verb, l.resource, l.group)
	switch l.place {
	case control:
		text += fmt.Sprintf(" in the namespace %q", namespace)
	case system:
		text += fmt.Sprintf(" in the namespace %q", system)
	}
	return text
}

func user(namespace string) string {
	return "system:serviceaccount:" + namespace + ":millwright-manager"
}

// manifests returns the roles, their bindings and the account.
func manifests(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	ours, err := config.Objects("rbac/control")
	require.NoError(t, err)
	theirs, err := config.Objects("rbac/target")
	require.NoError(t, err)
	return slices.Concat(ours, theirs)
}

// rulesOf returns the rules of a Role or ClusterRole, and where they apply. It returns nothing for
// other objects.
func rulesOf(t *testing.T, o *unstructured.Unstructured) (rules []rbacv1.PolicyRule, place string) {
	t.Helper()
	switch o.GetKind() {
	case "ClusterRole":
		place = target
	case "Role":
		place = control
		if o.GetNamespace() == system {
			place = system
		}
	default:
		return nil, ""
	}
	role := &rbacv1.ClusterRole{} // a Role has the same rules
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role))
	return role.Rules, place
}

// allPermissions returns all permissions in the manifests.
func allPermissions(t *testing.T) (all []permission) {
	t.Helper()
	for _, o := range manifests(t) {
		rules, place := rulesOf(t, o)
		for i := range rules {
			all = slices.Concat(all, split(&rules[i], place))
		}
	}
	return all
}

// split returns the single permissions of a rule.
func split(r *rbacv1.PolicyRule, place string) (all []permission) {
	names := r.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				for _, name := range names {
					all = append(all, permission{place, verb, group, resource, name})
				}
			}
		}
	}
	return all
}

// rule returns a rule for this permission only.
func (l permission) rule() rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{APIGroups: []string{l.group}, Resources: []string{l.resource}, Verbs: []string{l.verb}}
	if l.name != "" {
		r.ResourceNames = []string{l.name}
	}
	return r
}

// TestRulesAreDistinct: no permission is given twice, none has a wildcard, and none has a verb that
// could give further permissions.
func TestRulesAreDistinct(t *testing.T) {
	seen := map[permission]bool{}
	for _, l := range allPermissions(t) {
		require.False(t, seen[l], "%s is given twice", l)
		seen[l] = true
		require.NotContains(t, l.String(), "*")
		require.NotContains(t, []string{"deletecollection", "escalate", "bind", "impersonate"}, l.verb)
	}
	require.Greater(t, len(seen), 40)
}
