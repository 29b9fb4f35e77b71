// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
)

// noController is the reason of the Events on objects whose controller does not run.
const noController = "NoController"

// withoutController returns the kinds of the server whose main controller is not among run, as
// [registry.WithoutController] does.
func withoutController(ctx context.Context, c *client.Client, chosen, run []*controllers.Descriptor) ([]registry.Kind, error) {
	served, err := discovery.Ask(ctx, c.Discover)
	if partly := (*client.DiscoveryError)(nil); err != nil && !errors.As(err, &partly) {
		return nil, fmt.Errorf("asking the server for its kinds: %w", err)
	}
	return slices.DeleteFunc(registry.WithoutController(chosen, run), func(k registry.Kind) bool {
		return !slices.ContainsFunc(served, func(s client.Served) bool { return s.Resource == k.Resource })
	}), nil
}

// missing is the controller that finds objects whose own controller does not run. Each gets an
// Event, and the first one of a kind a line in the log.
type missing struct {
	informers map[registry.Kind]cache.SharedInformer[*metav1.PartialObjectMetadata]
	recorder  *events.Recorder
	log       *slog.Logger
	logged    map[registry.Kind]bool // only the one worker uses it
}

// untouched is an object of a kind without its controller.
type untouched struct {
	kind registry.Kind
	key  object.Key
}

// String is how the log shows the object.
func (u untouched) String() string { return u.kind.Resource.Kind + " " + u.key.String() }

// newMissing returns the controller for some kinds. It comes after the other controllers of the
// host, so that it shares their informers.
func newMissing(h controller.Host, kinds []registry.Kind) controller.Runnable {
	const name = "missing-controllers"
	m := &missing{
		informers: map[registry.Kind]cache.SharedInformer[*metav1.PartialObjectMetadata]{},
		recorder:  h.Recorder("setpoint-up"),
		log:       h.Logger(),
		logged:    map[registry.Kind]bool{},
	}
	var sources []controller.Option
	for _, k := range kinds {
		m.informers[k] = cache.Informer[*metav1.PartialObjectMetadata](h, cache.OfKind(k.GroupVersionKind()))
		sources = append(sources, controller.Watches(m.informers[k],
			func(o cache.Item[*metav1.PartialObjectMetadata], add func(untouched)) { add(untouched{k, o.Key()}) },
			appeared))
	}
	return controller.NewKeyed(name, m.report, sources...)
}

// appeared is the predicate of objects that are new to the informer.
func appeared(e cache.Event[*metav1.PartialObjectMetadata]) bool {
	return e.Kind == cache.Added || e.Kind == cache.Replaced
}

// report reports one object.
func (m *missing) report(_ context.Context, req controller.RequestOf[untouched]) (controller.Result, error) {
	kind := req.Key.kind
	o, err := m.informers[kind].Get(req.Key.key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil || ofTheCluster(kind, o) {
		return controller.Result{}, err
	}
	about := o.DeepCopy()
	about.SetGroupVersionKind(kind.GroupVersionKind()) // which metadata alone does not say
	m.recorder.Warning(about, noController, "Reconcile", "setpoint up does not run %s, which acts on %s: %s", kind.Controller, kind.Objects(), kind.Because)
	if !m.logged[kind] {
		m.logged[kind] = true
		m.log.Warn("the controller of this object does not run here", "kind", kind.Resource.Kind, "object", req.Key.key.String(), "missing", kind.Controller, "because", kind.Because)
	}
	return controller.Result{}, nil
}

// ofTheCluster reports whether an object belongs to every cluster of "setpoint up". API servers
// make the namespaces, and the Service and the ServiceCIDR with the name kubernetes; the
// simulation makes its Nodes.
// Source: k8s.io/kubernetes/pkg/controlplane, its controllers systemnamespaces,
// kubernetesservice and defaultservicecidr.
func ofTheCluster(k registry.Kind, o *metav1.PartialObjectMetadata) bool {
	switch k.Resource.Kind {
	case "Namespace":
		return o.Name == metav1.NamespaceDefault || strings.HasPrefix(o.Name, "kube-")
	case "Service":
		return o.Namespace == metav1.NamespaceDefault && o.Name == "kubernetes"
	case "ServiceCIDR":
		return o.Name == "kubernetes"
	case "Node":
		return o.Labels["sim.setpoint.io/managed"] == "true"
	}
	return false
}

// lineWidth is the usual width of a terminal, in columns.
const lineWidth = 80

// describeMissing returns the kinds as the start of "setpoint up" shows them: a paragraph for
// each reason, or "" if no controller is missing.
func describeMissing(kinds []registry.Kind) string {
	objects := map[string][]string{} // by reason
	for _, k := range kinds {
		objects[k.Because] = append(objects[k.Because], k.Objects())
	}
	var text strings.Builder
	for _, because := range slices.Sorted(maps.Keys(objects)) {
		title := "No controller acts on these kinds, because " + because
		if because == registry.LeftOut {
			title = "The flag --controllers leaves out the controllers of"
		}
		fmt.Fprintf(&text, "\n%s\n%s", title, indented(objects[because]))
	}
	return text.String()
}

// indented returns names as indented lines of a terminal's width.
func indented(names []string) string {
	const indent = "  "
	line, text := indent, ""
	for i, name := range names {
		if i < len(names)-1 {
			name += ","
		}
		if len(line)+len(name) > lineWidth {
			text += strings.TrimRight(line, " ") + "\n"
			line = indent
		}
		line += name + " "
	}
	return text + strings.TrimRight(line, " ") + "\n"
}
