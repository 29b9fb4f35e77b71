// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/wire"
)

// page is how many objects one request of a completion lists.
const page = 1000

// Cluster is the cluster of a command's kubeconfig. The kubeconfig is read at each question: flags
// that are typed before Tab count.
type Cluster struct {
	Target *cli.Target
	// Fits chooses the kinds that the command takes.
	Fits func(client.Served) bool
}

func (k Cluster) client() (*client.Client, error) {
	config, err := k.Target.Config()
	if err != nil {
		return nil, err
	}
	return client.New(config)
}

// Kinds returns the kinds that fit, by their names in kubectl, sorted, with kind and short names as
// description.
func (k Cluster) Kinds(ctx context.Context) ([]string, error) {
	c, err := k.client()
	if err != nil {
		return nil, err
	}
	served, err := c.Discover(ctx)
	if _, partly := errors.AsType[*client.DiscoveryError](err); err != nil && !partly {
		return nil, err
	}
	var names []string
	for _, s := range served {
		if !k.Fits(s) {
			continue
		}
		name, about := s.Plural, s.Kind
		if s.Group != "" {
			name += "." + s.Group
		}
		if len(s.Short) > 0 {
			about += " (" + strings.Join(s.Short, ", ") + ")"
		}
		names = append(names, name+"\t"+about)
	}
	slices.Sort(names)
	return names, nil
}

// Namespaces returns the names of all namespaces, sorted.
func (k Cluster) Namespaces(ctx context.Context) ([]string, error) {
	c, err := k.client()
	if err != nil {
		return nil, err
	}
	all, _, err := client.For[*corev1.Namespace](c).List(ctx, client.Selection{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range all {
		names = append(names, n.Name)
	}
	slices.Sort(names)
	return names, nil
}

// Objects returns the names of the objects of some kinds in some namespaces, each name once, sorted.
// Without a namespace it lists all. It returns none on an error, or if the server does not answer in
// time: a user who may not list Secrets types the name of one.
func (k Cluster) Objects(ctx context.Context, kinds, namespaces []string) []string {
	ctx, cancel := context.WithTimeout(ctx, Time)
	defer cancel()
	names, err := within(ctx, func(ctx context.Context) ([]string, error) { return k.objects(ctx, kinds, namespaces) })
	if err != nil {
		return nil
	}
	return names
}

func (k Cluster) objects(ctx context.Context, kinds, namespaces []string) ([]string, error) {
	api, err := k.client()
	if err != nil {
		return nil, err
	}
	served, _ := api.Discover(ctx) // without a group that does not answer, the others are found
	var names []string
	for _, name := range kinds {
		kind, _, found := discovery.Named(served, name, k.Fits)
		if !found {
			return nil, errors.New("the server has no kind " + name)
		}
		in := namespaces
		if len(in) == 0 || !kind.Namespaced {
			in = []string{""}
		}
		for _, namespace := range in {
			some, err := list(ctx, api, kind, namespace)
			if err != nil {
				return nil, err
			}
			names = append(names, some...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// list returns the names of the objects of a kind in a namespace, or in all.
func list(ctx context.Context, api *client.Client, kind client.Served, namespace string) ([]string, error) {
	var names []string
	selection := client.Selection{Namespace: namespace, MetadataOnly: true, WithoutManagedFields: true}
	options := client.ListOptions{PageSize: page}
	for {
		meta, err := api.List(ctx, kind.Resource, selection, options, func(e wire.Encoding, raw []byte) error {
			var o metav1.PartialObjectMetadata
			if err := e.Decode(raw, &o); err != nil {
				return err
			}
			names = append(names, o.Name)
			return nil
		})
		if err != nil || meta.Continue == "" {
			return names, err
		}
		options.Continue = meta.Continue
	}
}
