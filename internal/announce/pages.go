// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package announce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

// mostBytes bounds the answer of a manager.
const mostBytes = 32 << 20

// Pages returns a function that reads pages of the manager, by their path with the parameters, with the client certificate
// of config, and with its token if m is no manager of a Lease. See [Manager.Client].
func (m Manager) Pages(config *rest.Config) (get func(ctx context.Context, path string) (code int, body []byte, err error), err error) {
	pages, err := m.Client(config)
	if err != nil {
		return nil, err
	}
	if err := m.authorize(pages, config); err != nil {
		return nil, err
	}
	return func(ctx context.Context, path string) (int, []byte, error) { return m.read(ctx, pages, path) }, nil
}

// authorize adds the token of config to the requests if the user has named the address, and an authority of config vouches for the certificate
// there. A Lease, or a program with another certificate, gets no token. Neither does an address to which the manager redirects.
func (m Manager) authorize(pages *http.Client, config *rest.Config) error {
	pages.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if m.Fingerprint != "" || !strings.HasPrefix(m.URL, "https://") || config.Insecure {
		return nil
	}
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{}
	transport, err := rest.HTTPWrappersForConfig(config, pages.Transport)
	if err != nil {
		return fmt.Errorf("reading the token of the kubeconfig: %w", err)
	}
	pages.Transport = transport
	return nil
}

func (m Manager) read(ctx context.Context, pages *http.Client, path string) (code int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+path, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := pages.Do(request)
	if err != nil {
		if sent := (*url.Error)(nil); errors.As(err, &sent) {
			err = sent.Err // without the address, which stands before it
		}
		return 0, nil, fmt.Errorf("the manager at %s does not answer: %w", m.URL, err)
	}
	defer response.Body.Close() // it was read to its end, or nothing is left to be done about it
	if body, err = io.ReadAll(io.LimitReader(response.Body, mostBytes)); err != nil {
		return 0, nil, fmt.Errorf("reading the answer of the manager at %s: %w", m.URL, err)
	}
	return response.StatusCode, body, nil
}
