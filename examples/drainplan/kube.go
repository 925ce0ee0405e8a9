package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millwright-go/millwright/object"
)

// The types below have the fields of Kubernetes objects that are read. All other fields are ignored.

type metadata struct {
	Name, Namespace, UID string
	Generation           int64
	Labels, Annotations  map[string]string
	CreationTimestamp    time.Time
	DeletionTimestamp    time.Time
	// DeletionGracePeriodSeconds is the grace of a deletion; nil: the object is not being deleted.
	DeletionGracePeriodSeconds *int64
	OwnerReferences            []struct {
		APIVersion, Kind, Name, UID string
		Controller                  bool
	}
}

type kubeNode struct {
	Metadata metadata
	Spec     struct {
		ProviderID    string
		Unschedulable bool
		Taints        []object.Taint
	}
	Status struct {
		Conditions []struct {
			Type               string
			Status             object.ConditionStatus
			Reason, Message    string
			LastTransitionTime time.Time
		}
		VolumesAttached []struct{ Name string }
	}
}

type kubeToleration struct{ Key, Operator, Value, Effect string }

type kubePod struct {
	Metadata metadata
	Spec     struct {
		NodeName                      string
		Priority                      int32
		TerminationGracePeriodSeconds *int64
		Tolerations                   []kubeToleration
		Volumes                       []struct {
			Name                  string
			PersistentVolumeClaim *struct{ ClaimName string }
			Ephemeral             *struct{}
		}
	}
	Status struct {
		Phase      string
		Conditions []struct {
			Type   string
			Status object.ConditionStatus
		}
	}
}

type kubeBudget struct {
	APIVersion string // in policy/v1beta1 an empty selector selects nothing
	Metadata   metadata
	Spec       struct {
		Selector *struct {
			MatchLabels      map[string]string
			MatchExpressions []object.Requirement
		}
		UnhealthyPodEvictionPolicy string
	}
	Status struct {
		ObservedGeneration                                               int64
		DisruptionsAllowed, CurrentHealthy, DesiredHealthy, ExpectedPods int32
		DisruptedPods                                                    map[string]any
	}
}

type kubeVolume struct {
	Metadata metadata
	Spec     struct {
		ClaimRef             *struct{ Namespace, Name string }
		CSI                  *struct{ Driver, VolumeHandle string }
		AWSElasticBlockStore *struct{ VolumeID string }
		GCEPersistentDisk    *struct{ PDName string }
		AzureDisk            *struct{ DiskName string }
		Local                *struct{ Path string }
		HostPath             *struct{ Path string }
	}
}

type kubeClaim struct {
	Metadata metadata
	Spec     struct{ VolumeName string }
}

type kubeAttachment struct {
	Metadata metadata
	Spec     struct {
		NodeName string
		Source   struct{ PersistentVolumeName string }
	}
	Status struct{ Attached bool }
}

// cluster has the objects of all dumps.
type cluster struct {
	nodes       []*kubeNode
	pods        []*kubePod
	budgets     []*kubeBudget
	volumes     []*kubeVolume
	claims      []*kubeClaim
	attachments []*kubeAttachment
	index       map[objectName]int // of each object in its list
}

// objectName identifies an object of a dump.
type objectName struct{ kind, namespace, name string }

// groups has the API groups of the kinds that are read.
var groups = map[string]string{
	"Node": "", "Pod": "", "PersistentVolume": "", "PersistentVolumeClaim": "", "PodDisruptionBudget": "policy", "VolumeAttachment": "storage.k8s.io",
}

// otherGroup reports whether a kind has the name of one that is read, and belongs to another API group.
// Without an API version it is taken to be the one that is read.
func otherGroup(apiVersion, kind string) bool {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	want, known := groups[kind]
	return known && apiVersion != "" && group != want
}

// addObject adds an object, or replaces an earlier one of the same name. It ignores kinds that a drain
// does not need.
func (c *cluster) addObject(kind string, document json.RawMessage) error {
	switch kind {
	case "Node":
		return addTo(c, document, kind, &c.nodes, func(n *kubeNode) metadata { return n.Metadata })
	case "Pod":
		return addTo(c, document, kind, &c.pods, func(p *kubePod) metadata { return p.Metadata })
	case "PodDisruptionBudget":
		return addTo(c, document, kind, &c.budgets, func(b *kubeBudget) metadata { return b.Metadata })
	case "PersistentVolume":
		return addTo(c, document, kind, &c.volumes, func(v *kubeVolume) metadata { return v.Metadata })
	case "PersistentVolumeClaim":
		return addTo(c, document, kind, &c.claims, func(p *kubeClaim) metadata { return p.Metadata })
	case "VolumeAttachment":
		return addTo(c, document, kind, &c.attachments, func(a *kubeAttachment) metadata { return a.Metadata })
	}
	return nil
}

// addTo decodes an object, and adds it to a list of the cluster.
func addTo[T any](c *cluster, document json.RawMessage, kind string, list *[]*T, meta func(*T) metadata) error {
	obj := new(T)
	if err := json.Unmarshal(document, obj); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return fmt.Errorf("%s %s: %s can't be a %s", kind, meta(obj).Name, spelled(wrong.Field), wrong.Value)
		}
		return fmt.Errorf("%s %s: %w", kind, meta(obj).Name, err)
	}
	if meta(obj).Name == "" {
		return fmt.Errorf("a %s without metadata.name", kind)
	}
	name := objectName{kind, meta(obj).Namespace, meta(obj).Name}
	if i, exists := c.index[name]; exists {
		(*list)[i] = obj
		return nil
	}
	if c.index == nil {
		c.index = map[objectName]int{}
	}
	c.index[name] = len(*list)
	*list = append(*list, obj)
	return nil
}

// spelled returns a field's path as in a dump, where names begin with small letters.
func spelled(path string) string {
	parts := strings.Split(path, ".")
	for i, part := range parts {
		if part != "" {
			parts[i] = strings.ToLower(part[:1]) + part[1:]
		}
	}
	return strings.Join(parts, ".")
}
