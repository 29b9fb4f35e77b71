// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	registration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	"github.com/setpoint-io/setpoint/controlplane/metrics"
	"github.com/setpoint-io/setpoint/controlplane/nodes"
)

// simulateMetrics is simulate with the metrics behind kubectl top.
func (c *cluster) simulateMetrics() (stop func()) {
	c.Helper()
	serving, err := c.MetricsServing()
	c.check(err)
	return c.simulate(nodes.Options{Nodes: 1, Metrics: serving})
}

func (c *cluster) apiServices() registration.APIServiceInterface {
	c.Helper()
	client, err := registration.NewForConfig(c.AdminConfig())
	c.check(err)
	return client.APIServices()
}

func TestMetricsComeByWayOfTheAPIServer(t *testing.T) {
	c := newCluster(t)
	stop := c.simulateMetrics()
	c.create(c.pod("web", metrics.UsageCPU, "250m", metrics.UsageMemory, "64Mi", metrics.MetricPrefix+"requests", "7"))
	c.becomes("web", "ready", ready)
	_, err := c.client.CoreV1().ConfigMaps(c.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "queue", Labels: map[string]string{"queue": "mails"}, Annotations: map[string]string{metrics.MetricPrefix + "length": "30"},
	}}, metav1.CreateOptions{})
	c.check(err)
	_, err = c.client.CoreV1().Services(c.namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{metrics.MetricPrefix + "load": "3"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	c.check(err)

	api := c.client.Discovery().RESTClient()
	for path, want := range map[string]string{
		"/apis/metrics.k8s.io/v1beta1/namespaces/" + c.namespace + "/pods/web":                             `"usage":{"cpu":"250m","memory":"64Mi"}`,
		"/apis/metrics.k8s.io/v1beta1/nodes/node-0":                                                        `"usage":{"cpu":"250m","memory":"64Mi"}`,
		"/apis/custom.metrics.k8s.io/v1beta2/namespaces/" + c.namespace + "/pods/*/requests":               `"value":"7"`,
		"/apis/custom.metrics.k8s.io/v1beta2/namespaces/" + c.namespace + "/services/web/load":             `"describedObject":{"kind":"Service"`,
		"/apis/custom.metrics.k8s.io/v1beta2/namespaces/" + c.namespace + "/services/*/load":               `"value":"3"`,
		"/apis/external.metrics.k8s.io/v1beta1/namespaces/" + c.namespace + "/length?labelSelector=queue":  `"metricLabels":{"queue":"mails"}`,
		"/apis/external.metrics.k8s.io/v1beta1/namespaces/" + c.namespace + "/length?labelSelector=!queue": `"items":[]`,
	} {
		path, selector, _ := strings.Cut(path, "?labelSelector=")
		data, err := api.Get().AbsPath(path).Param("labelSelector", selector).DoRaw(t.Context())
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %s, %v, want %s", path, data, err, want)
		}
	}
	err = api.Get().AbsPath("/apis/custom.metrics.k8s.io/v1beta2/namespaces/" + c.namespace + "/sheep.farm.example.com/dolly/age").Do(t.Context()).Error()
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "the API group of sheep.farm.example.com does not exist") {
		t.Errorf("a metric of a kind that does not exist: %v", err)
	}

	// A user who may not read Pods may not read their metrics either.
	config, err := c.UserConfig("stranger")
	c.check(err)
	stranger, err := discovery.NewDiscoveryClientForConfig(config)
	c.check(err)
	err = stranger.RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/pods").Do(t.Context()).Error()
	if !apierrors.IsForbidden(err) {
		t.Errorf("a user without rights reads metrics: %v", err)
	}

	stop()
	list, err := c.apiServices().List(t.Context(), metav1.ListOptions{LabelSelector: "sim.setpoint.io/metrics"})
	c.check(err)
	if len(list.Items) != 0 {
		t.Errorf("after the end %d APIs are left, of which %s", len(list.Items), list.Items[0].Name)
	}
}

// While the APIs of the metrics come, discovery has them or not, and never fails: the
// controllers that read it would skip what they have to do.
func TestDiscoveryDoesNotFailWhileMetricsCome(t *testing.T) {
	c := newCluster(t)
	done, failed := make(chan struct{}), make(chan error, 1)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(failed)
		for {
			if _, _, err := c.client.Discovery().ServerGroupsAndResources(); err != nil {
				failed <- err
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	c.simulateMetrics()
	// With what is ready, the APIs are there.
	_, resources, err := c.client.Discovery().ServerGroupsAndResources()
	c.check(err)
	close(done)
	reading.Wait()
	if err := <-failed; err != nil {
		t.Errorf("discovery failed: %v", err)
	}
	found := map[string]bool{}
	for _, list := range resources {
		found[list.GroupVersion] = true
	}
	if !found["metrics.k8s.io/v1beta1"] {
		t.Errorf("the nodes are ready, and discovery has no metrics: %v", found)
	}
}

// What a killed process leaves behind is replaced by the next one, or removed. An API
// that another program serves is left alone.
func TestMetricsOfAKilledProcessAreReplacedOrRemoved(t *testing.T) {
	c := newCluster(t)
	services := c.apiServices()
	stop := c.simulateMetrics()
	left, err := services.Get(t.Context(), "v1beta1.metrics.k8s.io", metav1.GetOptions{})
	c.check(err)
	stop()
	leave := func() {
		again := left.DeepCopy()
		again.ResourceVersion, again.UID = "", ""
		_, err := services.Create(t.Context(), again, metav1.CreateOptions{})
		c.check(err)
	}

	leave()
	stop = c.simulateMetrics()
	if err := c.client.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/nodes").Do(t.Context()).Error(); err != nil {
		t.Errorf("after an earlier process was killed: %v", err)
	}
	stop()

	leave()
	c.check(metrics.Remove(t.Context(), c.AdminConfig()))
	if _, err := services.Get(t.Context(), left.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the API that was left behind is there: %v", err)
	}

	left.Labels = nil
	leave()
	t.Cleanup(func() {
		c.check(services.Delete(context.WithoutCancel(t.Context()), left.Name, metav1.DeleteOptions{}))
	})
	c.simulateMetrics()()
	if now, err := services.Get(t.Context(), left.Name, metav1.GetOptions{}); err != nil || *now.Spec.Service.Port != *left.Spec.Service.Port {
		t.Errorf("the API of another program was changed: %+v, %v", now, err)
	}
}

// An administrator may read metrics by way of the API server, but not directly.
func TestMetricsAreServedToTheirAPIServersAlone(t *testing.T) {
	c := newCluster(t)
	c.simulateMetrics()
	service, err := c.apiServices().Get(t.Context(), "v1beta1.metrics.k8s.io", metav1.GetOptions{})
	c.check(err)
	address := net.JoinHostPort("127.0.0.1", fmt.Sprint(*service.Spec.Service.Port))
	imposter, err := c.UserConfig("front-proxy-client", "system:masters")
	c.check(err)
	for name, config := range map[string]*rest.Config{
		"a client without a certificate":  {TLSClientConfig: rest.TLSClientConfig{CAData: c.AdminConfig().CAData}},
		"the administrator":               c.AdminConfig(),
		"a user of the API server's name": imposter,
	} {
		config.ServerName = metrics.ServerName
		client, err := rest.TLSConfigFor(config)
		c.check(err)
		conn, err := (&tls.Dialer{Config: client}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			// In TLS 1.3 the refusal comes with the first byte that is read.
			_, err = conn.Read(make([]byte, 1))
			c.check(conn.Close())
		}
		if err == nil || !strings.Contains(err.Error(), "remote error: tls: ") {
			t.Errorf("%s is answered, or not refused by TLS: %v", name, err)
		}
	}
}
