# Assembles PTX for each architecture: registers have to suffice.
# cmake -DPTXAS=program -DPTX=file,file... -P CheckSpills.cmake
string(REPLACE "," ";" PTX "${PTX}")
foreach(arch sm_80 sm_89 sm_90a sm_100a)
  foreach(file ${PTX})
    execute_process(COMMAND ${PTXAS} -v -arch=${arch} ${file} -o /dev/null RESULT_VARIABLE status OUTPUT_VARIABLE said
      ERROR_VARIABLE said)
    string(REGEX MATCHALL "[1-9][0-9]* bytes (stack frame|spill)" spills "${said}")
    if(status OR spills)
      message(SEND_ERROR "${arch}, ${file}: ${said}")
    endif()
  endforeach()
endforeach()
