package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millwright-go/millwright/object"
)

// These are the parts of Kubernetes objects that are read; the rest is ignored.

type metadata struct {
	Name, Namespace, UID string
	Generation           int64
	Labels, Annotations  map[string]string
	CreationTimestamp    time.Time
	DeletionTimestamp    time.Time
	// DeletionGracePeriodSeconds is the grace that was given; nil: it is not being deleted.
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

// cluster is what the dumps hold.
type cluster struct {
	nodes       []*kubeNode
	pods        []*kubePod
	budgets     []*kubeBudget
	volumes     []*kubeVolume
	claims      []*kubeClaim
	attachments []*kubeAttachment
	places      map[place]int // of each object in its list
}

// place is what tells objects of a dump apart.
type place struct{ kind, namespace, name string }

// groups are the API groups of the kinds that are read.
var groups = map[string]string{
	"Node": "", "Pod": "", "PersistentVolume": "", "PersistentVolumeClaim": "", "PodDisruptionBudget": "policy", "VolumeAttachment": "storage.k8s.io",
}

// foreign reports whether a kind is another one of that name. Without an API version it is not known,
// and counts as the usual one.
func foreign(apiVersion, kind string) bool {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	usual, known := groups[kind]
	return known && apiVersion != "" && group != usual
}

// take adds an object of a kind, or puts it in the place of an earlier one of its name. It skips kinds
// that a drain does not look at.
func (c *cluster) take(kind string, document json.RawMessage) error {
	switch kind {
	case "Node":
		return taken(c, document, kind, &c.nodes, func(n *kubeNode) metadata { return n.Metadata })
	case "Pod":
		return taken(c, document, kind, &c.pods, func(p *kubePod) metadata { return p.Metadata })
	case "PodDisruptionBudget":
		return taken(c, document, kind, &c.budgets, func(b *kubeBudget) metadata { return b.Metadata })
	case "PersistentVolume":
		return taken(c, document, kind, &c.volumes, func(v *kubeVolume) metadata { return v.Metadata })
	case "PersistentVolumeClaim":
		return taken(c, document, kind, &c.claims, func(p *kubeClaim) metadata { return p.Metadata })
	case "VolumeAttachment":
		return taken(c, document, kind, &c.attachments, func(a *kubeAttachment) metadata { return a.Metadata })
	}
	return nil
}

func taken[T any](c *cluster, document json.RawMessage, kind string, list *[]*T, meta func(*T) metadata) error {
	one := new(T)
	if err := json.Unmarshal(document, one); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return fmt.Errorf("%s %s: %s can't be a %s", kind, meta(one).Name, spelled(wrong.Field), wrong.Value)
		}
		return fmt.Errorf("%s %s: %w", kind, meta(one).Name, err)
	}
	if meta(one).Name == "" {
		return fmt.Errorf("a %s without metadata.name", kind)
	}
	at := place{kind, meta(one).Namespace, meta(one).Name}
	if i, again := c.places[at]; again {
		(*list)[i] = one
		return nil
	}
	if c.places == nil {
		c.places = map[place]int{}
	}
	c.places[at] = len(*list)
	*list = append(*list, one)
	return nil
}

// spelled returns a field's path as it stands in a dump, where the names begin with small letters.
func spelled(path string) string {
	parts := strings.Split(path, ".")
	for i, part := range parts {
		if part != "" {
			parts[i] = strings.ToLower(part[:1]) + part[1:]
		}
	}
	return strings.Join(parts, ".")
}
