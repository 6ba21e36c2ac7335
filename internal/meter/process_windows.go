package meter

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// mostHandles is how many handles the system gives any process.
const mostHandles = 16 << 20

// memoryCounters is PROCESS_MEMORY_COUNTERS_EX.
type memoryCounters struct {
	size, pageFaults                          uint32
	peakWorkingSet, workingSet                uintptr
	peakPagedPool, pagedPool                  uintptr
	peakNonPagedPool, nonPagedPool            uintptr
	pagefileUsage, peakPagefileUsage, private uintptr
}

func processUsage() usage {
	u := unknownUsage()
	self := windows.CurrentProcess()
	var began, ended, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(self, &began, &ended, &kernel, &user); err == nil {
		u.started = float64(began.Nanoseconds()) / 1e9
		u.cpuSeconds = seconds(kernel) + seconds(user)
	}
	kernel32 := windows.NewLazySystemDLL("kernel32.dll")
	m := memoryCounters{size: uint32(unsafe.Sizeof(memoryCounters{}))}
	if ok, _, _ := kernel32.NewProc("K32GetProcessMemoryInfo").Call(uintptr(self), uintptr(unsafe.Pointer(&m)), unsafe.Sizeof(m)); ok == 1 {
		u.resident, u.virtual = float64(m.workingSet), float64(m.private)
	}
	var handles uint32
	if ok, _, _ := kernel32.NewProc("GetProcessHandleCount").Call(uintptr(self), uintptr(unsafe.Pointer(&handles))); ok == 1 {
		u.openFiles, u.maxFiles = float64(handles), mostHandles
	}
	return u
}

// seconds is a span of time, which the system counts in tenths of microseconds.
func seconds(t windows.Filetime) float64 {
	return float64(uint64(t.HighDateTime)<<32|uint64(t.LowDateTime)) / 1e7
}
