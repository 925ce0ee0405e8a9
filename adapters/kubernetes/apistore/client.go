package apistore

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/object"
)

// NewClient returns a client for the kinds of one version of an API group. These kinds must be
// registered in known. The client keeps the config's limits and retries. Without a UserAgent it names
// the program, which the server records with changes. It leaves out the parts of an object that it
// can't read, and a Collection reports them.
func NewClient(config *rest.Config, version schema.GroupVersion, known *runtime.Scheme) (rest.Interface, error) {
	c := rest.CopyConfig(config)
	c.GroupVersion = &version
	c.APIPath = "/apis"
	if version.Group == "" {
		c.APIPath = "/api"
	}
	c.UserAgent = cmp.Or(c.UserAgent, rest.DefaultKubernetesUserAgent())
	lost := &losses{all: map[types.UID]loss{}}
	c.NegotiatedSerializer = lenientSerializer{serializer.NewCodecFactory(known).WithoutConversion(), lost}
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, err
	}
	return lenientClient{client, lost}, nil
}

// client makes the calls for one kind.
type client[R Raw] struct {
	rest       rest.Interface
	resource   string
	namespaced bool
	namespace  string
	blank      func() R
	blankList  func() runtime.Object
}

// to addresses a request to an object.
func (c *client[R]) to(r *rest.Request, k object.Key) *rest.Request {
	return r.NamespaceIfScoped(k.Namespace, c.namespaced).Resource(c.resource).Name(k.Name)
}

func (c *client[R]) get(ctx context.Context, k object.Key) (R, error) {
	raw := c.blank()
	return raw, c.to(c.rest.Get(), k).Do(ctx).Into(raw)
}

func (c *client[R]) create(ctx context.Context, raw R) (R, error) {
	made := c.blank()
	r := c.rest.Post().NamespaceIfScoped(raw.GetNamespace(), c.namespaced).Resource(c.resource)
	return made, r.Body(raw).Do(ctx).Into(made)
}

// patch sends a merge patch; part is a subresource, or empty.
func (c *client[R]) patch(ctx context.Context, k object.Key, part string, body []byte) (R, error) {
	changed := c.blank()
	r := c.to(c.rest.Patch(types.MergePatchType), k)
	if part != "" {
		r = r.SubResource(part)
	}
	return changed, r.Body(body).Do(ctx).Into(changed)
}

func (c *client[R]) delete(ctx context.Context, k object.Key, uid string) error {
	background := metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &background}
	if uid != "" {
		o.Preconditions = metav1.NewUIDPreconditions(uid)
	}
	return c.to(c.rest.Delete(), k).Body(&o).Do(ctx).Error()
}

// all addresses a request to all objects of the kind.
func (c *client[R]) all(r *rest.Request, o metav1.ListOptions) *rest.Request {
	return r.NamespaceIfScoped(c.namespace, c.namespaced && c.namespace != "").Resource(c.resource).
		SpecificallyVersionedParams(&o, scheme.ParameterCodec, schema.GroupVersion{Version: "v1"})
}

func (c *client[R]) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list := c.blankList()
	return list, c.all(c.rest.Get(), o).Do(ctx).Into(list)
}

func (c *client[R]) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return c.all(c.rest.Get(), o).Watch(ctx)
}
