package convert

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/object"
)

// readQuantities returns quantities in their canonical notation.
func readQuantities(list corev1.ResourceList) map[string]string {
	var out map[string]string
	for name, q := range list {
		if out == nil {
			out = make(map[string]string, len(list))
		}
		out[string(name)] = q.String()
	}
	return out
}

// writeQuantities changes the quantities that are to change. An unchanged quantity may be written in
// its canonical notation, which is no difference in a patch.
func writeQuantities(x *writer, field string, list *corev1.ResourceList, was, now map[string]string) {
	for name := range was {
		if _, stays := now[name]; !stays {
			delete(*list, corev1.ResourceName(name))
		}
	}
	for name, text := range now {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			x.fail(object.Invalid(field+"["+name+"]", "is no quantity"))
			continue
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[corev1.ResourceName(name)] = q
	}
}

func timePointer(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewTime(t)
	return &at
}
