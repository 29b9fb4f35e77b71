// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chromium drives a headless Chromium as a person would: it opens tabs, presses keys, clicks, and takes pictures.
//
//	browser, err := chromium.Start(ctx)
//	defer browser.Close()
//	tab, err := browser.Open()
//	err = tab.Visit("http://localhost:8080/")
//	err = tab.Click("#menu")
//
// A [Tab] also records what its pages do unseen: the addresses that they request, what their content security policy
// blocks, and the errors of their scripts.
package chromium
