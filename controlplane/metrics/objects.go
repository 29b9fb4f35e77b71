// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	registration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
	customv1beta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
)

// objects reads the objects that a metric is about. An object that does not exist is none.
type objects interface {
	read(ctx context.Context, q customRequest) ([]unstructured.Unstructured, error)
}

// clients are those of the API server.
type clients struct {
	kubernetes kubernetes.Interface
	services   registration.APIServicesGetter
	dynamic    dynamic.Interface
	discovery  discovery.DiscoveryInterface
}

func newClients(config *rest.Config, http *http.Client) (*clients, error) {
	var c clients
	var err error
	if c.kubernetes, err = kubernetes.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("client of the metrics: %w", err)
	}
	if c.services, err = registration.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("client of the metrics: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(config, http); err != nil {
		return nil, fmt.Errorf("client of the metrics: %w", err)
	}
	c.discovery = c.kubernetes.Discovery()
	return &c, nil
}

func (c *clients) read(ctx context.Context, q customRequest) ([]unstructured.Unstructured, error) {
	version, err := c.versionOf(q.resource)
	if err != nil {
		return nil, err
	}
	var api dynamic.ResourceInterface = c.dynamic.Resource(version)
	if q.namespace != "" {
		api = c.dynamic.Resource(version).Namespace(q.namespace)
	}
	if q.name == customv1beta2.AllObjects {
		list, err := api.List(ctx, metav1.ListOptions{LabelSelector: q.selector.String()})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
	one, err := api.Get(ctx, q.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []unstructured.Unstructured{*one}, nil
}

// versionOf returns the version of a resource that the API server prefers: a request
// for a metric names none.
func (c *clients) versionOf(of schema.GroupResource) (schema.GroupVersionResource, error) {
	if of.Group == "" {
		return of.WithVersion("v1"), nil
	}
	groups, err := c.discovery.ServerGroups()
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	for i := range groups.Groups {
		if groups.Groups[i].Name == of.Group {
			return of.WithVersion(groups.Groups[i].PreferredVersion.Version), nil
		}
	}
	return schema.GroupVersionResource{}, apierrors.NewBadRequest(fmt.Sprintf("the API group of %s does not exist", of))
}
