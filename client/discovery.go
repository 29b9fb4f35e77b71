// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Served is a kind of object that a server serves.
type Served struct {
	object.Resource
	Verbs    []string // what can be done with it, such as "list" and "deletecollection"
	Singular string   // such as "deployment"; often empty
	Short    []string // such as "deploy"
}

// Can reports whether the server has a verb for the kind. The user of the client may
// still lack the right to it.
func (s Served) Can(verb string) bool { return slices.Contains(s.Verbs, verb) }

// DiscoveryError lists the versions of groups that a server could not describe, for
// example because an aggregated server does not answer.
type DiscoveryError struct {
	Failed map[schema.GroupVersion]error
}

// Error has the words of client-go's discovery.ErrGroupDiscoveryFailed, which stand
// in the conditions of a Namespace and are known from there.
func (e *DiscoveryError) Error() string {
	all := make([]string, 0, len(e.Failed))
	for version, err := range e.Failed {
		all = append(all, fmt.Sprintf("%s: %v", version, err))
	}
	slices.Sort(all)
	return "unable to retrieve the complete list of server APIs: " + strings.Join(all, ", ")
}

// Unwrap returns the errors of all versions.
func (e *DiscoveryError) Unwrap() []error { return slices.Collect(maps.Values(e.Failed)) }

// errStale is the error for a version whose aggregated server has not answered the API
// server recently. Its description may be out of date.
var errStale = errors.New("stale GroupVersion discovery")

// Discover asks the server which kinds it serves, each in the version that the
// server prefers of those that have it. The order is the server's. What Resolve
// remembers of a kind that is served otherwise by now, it remembers no longer.
//
// A *[DiscoveryError] is the error where a part is unknown; the kinds that are known
// are returned with it.
func (c *Client) Discover(ctx context.Context) ([]Served, error) {
	d := discovery{served: map[schema.GroupResource]int{}, failed: map[schema.GroupVersion]error{}}
	paths := [...]string{"/api", "/apis"}
	var answers [len(paths)]Answer
	var errs [len(paths)]error
	var asked sync.WaitGroup
	for i, path := range paths {
		asked.Go(func() { answers[i], errs[i] = c.askFor(ctx, path) })
	}
	asked.Wait()
	for i, path := range paths {
		if apierrors.IsNotFound(errs[i]) && path == "/api" {
			continue // a server of custom groups alone
		}
		if errs[i] != nil {
			return nil, fmt.Errorf("discovering what is served: %w", errs[i])
		}
		if err := c.discover(ctx, path, answers[i], &d); err != nil {
			return nil, err
		}
	}
	c.correct(d.kinds)
	if len(d.failed) > 0 {
		return d.kinds, &DiscoveryError{Failed: d.failed}
	}
	return d.kinds, nil
}

// correct forgets what has changed: a custom kind may have been deleted and defined
// again, with another scope or another plural.
func (c *Client) correct(found []Served) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range found {
		if known, ok := c.resources[s.GroupVersionKind()]; ok && known != s.Resource {
			delete(c.resources, s.GroupVersionKind())
		}
	}
}

// discovery is what is known of a server so far.
type discovery struct {
	kinds  []Served
	served map[schema.GroupResource]int // place in kinds
	failed map[schema.GroupVersion]error
}

// add notes a kind. Versions arrive in the order of preference, so the first one that has
// a kind is the one to use.
func (d *discovery) add(s Served) {
	id := schema.GroupResource{Group: s.Group, Resource: s.Plural}
	if _, known := d.served[id]; known || s.Kind == "" {
		return
	}
	d.served[id] = len(d.kinds)
	d.kinds = append(d.kinds, s)
}

// aggregated is the form in which a server describes all groups in one answer.
// Servers before Kubernetes 1.30 do not know it and answer with a list of groups.
const aggregated = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// askFor requests what a server says at "/api" or "/apis".
func (c *Client) askFor(ctx context.Context, path string) (Answer, error) {
	return c.Request(http.MethodGet).Path(path).Accept(wire.JSON.MediaType()+aggregated, wire.JSON.MediaType()).Do(ctx)
}

// discover adds what a server has answered at a path.
func (c *Client) discover(ctx context.Context, path string, answer Answer, d *discovery) error {
	// Of the three forms, each has fields that the others lack.
	var body struct {
		Kind     string                           `json:"kind"`
		Items    []apidiscovery.APIGroupDiscovery `json:"items"`
		Groups   []metav1.APIGroup                `json:"groups"`
		Versions []string                         `json:"versions"`
	}
	if err := json.Unmarshal(answer.Body, &body); err != nil {
		return fmt.Errorf("discovering what is served: reading %s: %w", path, err)
	}
	switch body.Kind {
	case "APIGroupDiscoveryList":
		for _, group := range body.Items {
			d.addGroup(group)
		}
	case "APIGroupList":
		for _, group := range body.Groups {
			c.addVersions(ctx, d, versionsOf(group))
		}
	case "APIVersions":
		versions := make([]schema.GroupVersion, 0, len(body.Versions))
		for _, version := range body.Versions {
			versions = append(versions, schema.GroupVersion{Version: version})
		}
		c.addVersions(ctx, d, versions)
	default:
		return fmt.Errorf("discovering what is served: %s is a %q: is %s a Kubernetes API server?", path, body.Kind, c.Server())
	}
	return nil
}

// addGroup adds a group of the aggregated form.
func (d *discovery) addGroup(group apidiscovery.APIGroupDiscovery) {
	for _, version := range group.Versions {
		if version.Freshness == apidiscovery.DiscoveryFreshnessStale {
			failed := schema.GroupVersion{Group: group.Name, Version: version.Version}
			d.failed[failed] = fmt.Errorf("%w: %s", errStale, failed)
			continue
		}
		for _, r := range version.Resources {
			if r.ResponseKind == nil { // there are subresources alone
				continue
			}
			d.add(Served{
				Resource: object.Resource{
					Group: group.Name, Version: version.Version, Plural: r.Resource, Kind: r.ResponseKind.Kind,
					Namespaced: r.Scope == apidiscovery.ScopeNamespace,
				},
				Verbs: r.Verbs, Singular: r.SingularResource, Short: r.ShortNames,
			})
		}
	}
}

// versionsOf returns the versions of a group, the preferred one first.
func versionsOf(group metav1.APIGroup) []schema.GroupVersion {
	versions := []schema.GroupVersion{{Group: group.Name, Version: group.PreferredVersion.Version}}
	for _, v := range group.Versions {
		if v.Version != group.PreferredVersion.Version {
			versions = append(versions, schema.GroupVersion{Group: group.Name, Version: v.Version})
		}
	}
	return versions
}

// addVersions requests the versions of a group, all at the same time, and adds their
// kinds.
func (c *Client) addVersions(ctx context.Context, d *discovery, versions []schema.GroupVersion) {
	described := make([][]metav1.APIResource, len(versions))
	errs := make([]error, len(versions))
	var asked sync.WaitGroup
	for i, version := range versions {
		asked.Go(func() { described[i], errs[i] = c.describe(ctx, version) })
	}
	asked.Wait()
	for i, version := range versions {
		if errs[i] != nil {
			d.failed[version] = errs[i]
			continue
		}
		for _, r := range described[i] {
			if strings.Contains(r.Name, "/") { // a subresource
				continue
			}
			d.add(Served{
				Resource: object.Resource{Group: version.Group, Version: version.Version, Plural: r.Name, Kind: r.Kind, Namespaced: r.Namespaced},
				Verbs:    r.Verbs, Singular: r.SingularName, Short: r.ShortNames,
			})
		}
	}
}
