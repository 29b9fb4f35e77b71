// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// handleResources serves metrics.k8s.io, which kubectl top and autoscalers read.
func (s *Server) handleResources(mux *http.ServeMux) {
	root := "GET " + resourceMetrics.path()
	verbs := metav1.Verbs{"get", "list"}
	mux.Handle(root, resourceList(resourceMetrics.version,
		metav1.APIResource{Name: "nodes", Kind: "NodeMetrics", Verbs: verbs},
		metav1.APIResource{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: verbs},
	))
	mux.Handle(root+"/nodes", answer(s.listNodes))
	mux.Handle(root+"/nodes/{name}", answer(s.getNode))
	mux.Handle(root+"/pods", answer(s.listPods))
	mux.Handle(root+"/namespaces/{namespace}/pods", answer(s.listPods))
	mux.Handle(root+"/namespaces/{namespace}/pods/{name}", answer(s.getPod))
}

// snapshot returns the state that a request about a namespace is answered from; "" is all.
func (s *Server) snapshot(namespace string) *snapshot {
	return newSnapshot(s.Cluster.Pods(namespace), s.now())
}

func (s *Server) listPods(r *http.Request) (any, error) {
	wanted, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	list := metricsv1beta1.PodMetricsList{
		TypeMeta: metav1.TypeMeta{APIVersion: resourceMetrics.version.String(), Kind: "PodMetricsList"},
		Items:    []metricsv1beta1.PodMetrics{},
	}
	state := s.snapshot(r.PathValue("namespace"))
	for _, pod := range state.pods {
		if !wanted.has(pod) {
			continue
		}
		if m, ok := state.podMetrics(pod); ok {
			list.Items = append(list.Items, m)
		}
	}
	slices.SortFunc(list.Items, func(a, b metricsv1beta1.PodMetrics) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

func (s *Server) getPod(r *http.Request) (any, error) {
	state := s.snapshot(r.PathValue("namespace"))
	name := r.PathValue("name")
	for _, pod := range state.pods {
		if pod.Name != name {
			continue
		}
		if m, ok := state.podMetrics(pod); ok {
			return m, nil
		}
	}
	return nil, apierrors.NewNotFound(resourceMetrics.resource("pods"), name)
}

func (s *Server) listNodes(r *http.Request) (any, error) {
	wanted, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	list := metricsv1beta1.NodeMetricsList{
		TypeMeta: metav1.TypeMeta{APIVersion: resourceMetrics.version.String(), Kind: "NodeMetricsList"},
		Items:    []metricsv1beta1.NodeMetrics{},
	}
	state := s.snapshot(metav1.NamespaceAll)
	usage := state.usageByNode()
	for _, node := range s.Cluster.Nodes() {
		if wanted.has(node) {
			list.Items = append(list.Items, state.nodeMetrics(node, usage[node.Name]))
		}
	}
	slices.SortFunc(list.Items, func(a, b metricsv1beta1.NodeMetrics) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

func (s *Server) getNode(r *http.Request) (any, error) {
	name := r.PathValue("name")
	nodes := s.Cluster.Nodes()
	i := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == name })
	if i < 0 {
		return nil, apierrors.NewNotFound(resourceMetrics.resource("nodes"), name)
	}
	state := s.snapshot(metav1.NamespaceAll)
	return state.nodeMetrics(nodes[i], state.usageByNode()[name]), nil
}
