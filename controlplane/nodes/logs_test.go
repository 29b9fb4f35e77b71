// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controlplane/nodes"
)

// simulateServing is simulate with the server behind kubectl logs.
func (c *cluster) simulateServing() (stop func()) {
	c.Helper()
	serving, err := c.NodeServing()
	c.check(err)
	return c.simulate(nodes.Options{Nodes: 1, Serving: serving})
}

func (c *cluster) logs(name string, opts corev1.PodLogOptions) string {
	c.Helper()
	data, err := c.client.CoreV1().Pods(c.namespace).GetLogs(name, &opts).DoRaw(c.Context())
	c.check(err)
	return string(data)
}

func TestLogsComeFromTheSimulatedNode(t *testing.T) {
	c := newCluster(t)
	c.simulateServing()
	pod := c.pod("crashing", nodes.ExitAfter, "1s", nodes.ExitCode, "7")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	c.create(pod)
	c.becomes("crashing", "started", func(pod *corev1.Pod) bool { return pod.Status.Phase != corev1.PodPending })
	want := fmt.Sprintf("created container web of pod %s/crashing on simulated node node-0\n", c.namespace) +
		"started with image nginx\nready\nexited with code 7: annotations sim.setpoint.io/exit-after=1s, sim.setpoint.io/exit-code=7\n"
	if got := c.logs("crashing", corev1.PodLogOptions{Follow: true}); got != want {
		t.Errorf("the log that is followed is\n%s\nwant\n%s", got, want)
	}
}

func TestFollowedLogDoesNotHoldUpTheEnd(t *testing.T) {
	c := newCluster(t)
	stop := c.simulateServing()
	c.create(c.pod("web"))
	c.becomes("web", "ready", ready)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := c.client.CoreV1().Pods(c.namespace).GetLogs("web", &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	c.check(err)
	defer stream.Close()
	// The Pod may be ready in the API before the node has noted it: the log goes on.
	lines := bufio.NewReader(stream)
	for line := ""; line != "ready\n"; {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("the log ends with %q, %v", line, err)
		}
	}
	stop() // fails the test if it hangs
	if rest, _ := io.ReadAll(lines); len(rest) > 0 {
		t.Errorf("the log goes on with %q", rest)
	}
}

// An administrator may read the logs by way of the API server, but not directly: no
// certificate but the API server's own opens a connection.
func TestNodesAnswerTheirAPIServersAlone(t *testing.T) {
	c := newCluster(t)
	c.simulateServing()
	node, err := c.client.CoreV1().Nodes().Get(t.Context(), "node-0", metav1.GetOptions{})
	c.check(err)
	address := net.JoinHostPort("127.0.0.1", fmt.Sprint(node.Status.DaemonEndpoints.KubeletEndpoint.Port))

	imposter, err := c.UserConfig("kube-apiserver-kubelet-client", "system:masters")
	c.check(err)
	for name, config := range map[string]*rest.Config{
		"nobody":               {TLSClientConfig: rest.TLSClientConfig{CAData: c.AdminConfig().CAData}},
		"the administrator":    c.AdminConfig(),
		"one who is so called": imposter,
	} {
		client, err := rest.TLSConfigFor(config)
		c.check(err)
		conn, err := (&tls.Dialer{Config: client}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			// In TLS 1.3 the refusal comes with the first byte that is read.
			_, err = conn.Read(make([]byte, 1))
			c.check(conn.Close())
		}
		if err == nil || !strings.Contains(err.Error(), "tls: ") {
			t.Errorf("%s is answered, or not refused by TLS: %v", name, err)
		}
	}
}
