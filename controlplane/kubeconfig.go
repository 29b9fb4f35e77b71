// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/setpoint-io/setpoint/internal/ownfile"
	"github.com/setpoint-io/setpoint/internal/published"
)

// Context is the name of the cluster, the user and the current context in the
// kubeconfig. The API servers after the first have contexts of their own,
// "setpoint-1" and so on.
const Context = "setpoint"

// maxKubeconfig bounds what is read of a file that may be a kubeconfig of ours,
// in bytes; one has some 6,000.
const maxKubeconfig = 4 << 20

func contextName(server int) string {
	if server == 0 {
		return Context
	}
	return fmt.Sprintf("%s-%d", Context, server)
}

func isOurContext(name string) bool {
	number, found := strings.CutPrefix(name, Context+"-")
	if !found {
		return name == Context
	}
	_, err := strconv.ParseUint(number, 10, 16)
	return err == nil
}

// removeKubeconfig removes the kubeconfig of an earlier control plane, if there is one, and
// nothing else. That of one that runs stays, which is an error.
func removeKubeconfig(path string) error {
	data, err := ownfile.Read(path, maxKubeconfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, ownfile.ErrNotOwn) {
		return fmt.Errorf("%w: %w; choose another file", ErrForeignKubeconfig, err)
	}
	if err != nil {
		return fmt.Errorf("replacing the kubeconfig: %w; choose another file", err)
	}
	c, err := clientcmd.Load(data)
	if err != nil {
		// The cause may quote the file, and so a password.
		return fmt.Errorf("%w: %s is not a kubeconfig; choose another file", ErrForeignKubeconfig, path)
	}
	for name := range c.Clusters {
		if !isOurContext(name) {
			return fmt.Errorf("%w: %s has the cluster %q; choose another file, or move it away", ErrForeignKubeconfig, path, name)
		}
	}
	if len(c.Clusters) == 0 && len(data) > 0 {
		return fmt.Errorf("%w: %s has no cluster of a control plane; choose another file", ErrForeignKubeconfig, path)
	}
	if err := published.RemoveStale(path); err != nil {
		return fmt.Errorf("replacing the kubeconfig %s: %w", path, err)
	}
	return nil
}

// removeOwnKubeconfig removes the file unless it has changed since it was written: then
// it is in use otherwise by now.
func removeOwnKubeconfig(path string, written []byte) error {
	data, err := ownfile.Read(path, maxKubeconfig)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ownfile.ErrNotOwn) || err == nil && !bytes.Equal(data, written) {
		return nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return fmt.Errorf("removing the kubeconfig: %w", err)
	}
	return nil
}

func encodeKubeconfig(urls []string, caPEM []byte, user keyPair) ([]byte, error) {
	c := clientcmdapi.NewConfig()
	c.CurrentContext = Context
	c.AuthInfos[Context] = &clientcmdapi.AuthInfo{ClientCertificateData: user.certPEM, ClientKeyData: user.keyPEM}
	for i, url := range urls {
		name := contextName(i)
		c.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: caPEM}
		c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: Context}
	}
	data, err := clientcmd.Write(*c)
	if err != nil {
		return nil, fmt.Errorf("encoding kubeconfig: %w", err)
	}
	return data, nil
}

func restConfig(url string, caPEM []byte, user keyPair) *rest.Config {
	return &rest.Config{
		Host: url,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   caPEM,
			CertData: user.certPEM,
			KeyData:  user.keyPEM,
		},
		// The servers' own priority and fairness guards them; client-go's
		// default of 5 requests a second would only slow a test down.
		QPS: -1,
	}
}
