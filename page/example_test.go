// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/page"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// One line has a manager serve the pages below /page/. A program that serves them itself uses the handler.
func Example() {
	server := fakeapi.New().Serve(pods)
	m, err := manager.New(server.Config())
	if err != nil {
		fmt.Println(err)
	}
	if err := page.Add(m); err != nil {
		fmt.Println(err)
	}

	handler := page.New(page.Of(m), page.Options{})
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
