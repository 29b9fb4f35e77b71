// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	customv1beta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	externalv1beta1 "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/setpoint-io/setpoint/controlplane/internal/loopback"
)

const (
	serviceNamespace = metav1.NamespaceSystem
	serviceName      = "setpoint-metrics"

	// managedLabel marks what this package creates, and removes again.
	managedLabel = prefix + "metrics"

	// priority is that of metrics-server's APIService, for group and version: behind
	// all APIs of Kubernetes, so that "kubectl get pods" means theirs.
	priority = 100
)

// Times of the registration.
const (
	registerPoll    = 20 * time.Millisecond
	registerRetry   = time.Second
	registerTimeout = 10 * time.Second // until OnReady is called in any case
	removeTimeout   = 2 * time.Second
)

// api is one of the three APIs.
type api struct{ version schema.GroupVersion }

var (
	resourceMetrics = api{metricsv1beta1.SchemeGroupVersion}
	customMetrics   = api{customv1beta2.SchemeGroupVersion}
	externalMetrics = api{externalv1beta1.SchemeGroupVersion}
)

var apis = []api{resourceMetrics, customMetrics, externalMetrics}

func (a api) path() string { return "/apis/" + a.version.String() }

// name is that of the APIService.
func (a api) name() string { return a.version.Version + "." + a.version.Group }

func (a api) resource(name string) schema.GroupResource {
	return schema.GroupResource{Group: a.version.Group, Resource: name}
}

// register registers the APIs, however long that takes, and calls OnReady.
func (s *Server) register(ctx context.Context) {
	ready := sync.OnceFunc(s.OnReady)
	late := time.AfterFunc(registerTimeout, func() {
		s.Logger.Warn("the metrics of simulated nodes are not served yet; kubectl top and autoscalers do not work until they are")
		ready()
	})
	defer late.Stop()
	for wait := registerPoll; ; wait = min(2*wait, registerRetry) {
		err := s.registerOnce(ctx)
		if err == nil {
			ready()
			return
		}
		s.Logger.Debug("registering the metrics of simulated nodes; it will be tried again", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// registerOnce returns nil if the APIs are registered and can be discovered.
func (s *Server) registerOnce(ctx context.Context) error {
	if err := s.ensureService(ctx); err != nil {
		return err
	}
	var ours []api
	for _, a := range apis {
		registered, err := s.ensureAPIService(ctx, a)
		if err != nil {
			return err
		}
		if registered {
			ours = append(ours, a)
		}
	}
	return s.discovered(ctx, ours)
}

// ensureService makes the Service that stands for this machine.
func (s *Server) ensureService(ctx context.Context) error {
	want := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: serviceNamespace, Name: serviceName, Labels: map[string]string{managedLabel: "true"}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: loopback.Address},
	}
	services := s.api.kubernetes.CoreV1().Services(serviceNamespace)
	_, err := services.Create(ctx, want, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Service %s/%s: %w", serviceNamespace, serviceName, err)
	}
	return nil
}

// ensureAPIService makes the APIService of an API, or brings it up to date. It reports
// false if the API is served by another program, which has an APIService of its own.
//
// A new one is created without its Service and given it by an update. The API server
// takes an APIService without a Service for available, and an update does not change
// that. If the Service were there from the beginning, discovery would report the API as
// failed until the API server has checked it.
func (s *Server) ensureAPIService(ctx context.Context, a api) (ours bool, err error) {
	services := s.api.services.APIServices()
	now, err := services.Get(ctx, a.name(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		now, err = services.Create(ctx, &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: a.name(), Labels: map[string]string{managedLabel: "true"}},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: a.version.Group, Version: a.version.Version,
				GroupPriorityMinimum: priority, VersionPriority: priority,
			},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return false, fmt.Errorf("registering %s: %w", a.version, err)
	}
	if now.Labels[managedLabel] != "true" {
		return false, nil
	}
	want := now.DeepCopy()
	want.Spec.CABundle = s.Serving.CA
	want.Spec.Service = &apiregistrationv1.ServiceReference{
		Namespace: serviceNamespace, Name: serviceName, Port: new(loopback.Port(s.listener)),
	}
	if apiequality.Semantic.DeepEqual(now, want) {
		return true, nil
	}
	if _, err := services.Update(ctx, want, metav1.UpdateOptions{}); err != nil {
		return false, fmt.Errorf("registering %s: %w", a.version, err)
	}
	return true, nil
}

// discovered returns an error unless the API server's discovery has the APIs and none of
// them fails.
func (s *Server) discovered(ctx context.Context, apis []api) error {
	for _, a := range apis {
		if _, err := s.api.discovery.RESTClient().Get().AbsPath(a.path()).DoRaw(ctx); err != nil {
			return fmt.Errorf("discovering %s: %w", a.version, err)
		}
	}
	groups, _, err := s.api.discovery.ServerGroupsAndResources()
	if failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err); ok {
		for _, a := range apis {
			if err := failed[a.version]; err != nil {
				return fmt.Errorf("discovering %s: %w", a.version, err)
			}
		}
	} else if err != nil {
		return fmt.Errorf("discovering the metrics: %w", err)
	}
	known := map[string]bool{}
	for _, group := range groups {
		known[group.Name] = true
	}
	for _, a := range apis {
		if !known[a.version.Group] {
			return fmt.Errorf("discovering %s: it is not there yet", a.version)
		}
	}
	return nil
}

// unregister removes the APIs, so that no discovery waits for a Server that has ended.
func (s *Server) unregister(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	if err := s.api.remove(ctx); err != nil {
		s.Logger.Debug("removing the metrics of simulated nodes; the next start does it", "err", err)
	}
}

// Remove removes the APIs that a Server has registered which was killed, for a control
// plane that goes on without one.
func Remove(ctx context.Context, config *rest.Config) error {
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("client of the metrics: %w", err)
	}
	defer http.CloseIdleConnections()
	c, err := newClients(config, http)
	if err != nil {
		return err
	}
	return c.remove(ctx)
}

func (c *clients) remove(ctx context.Context) error {
	services := c.services.APIServices()
	list, err := services.List(ctx, metav1.ListOptions{LabelSelector: managedLabel + "=true"})
	if err != nil {
		return fmt.Errorf("listing the metrics' APIServices: %w", err)
	}
	for i := range list.Items {
		err := services.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("removing APIService %s: %w", list.Items[i].Name, err)
		}
	}
	return nil
}
